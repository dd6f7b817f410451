"""Tasks of the sizes that GPU servers and trainers see."""
