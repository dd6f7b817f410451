"""What is computed on: the reference, its oracle, secret inputs, and whether they can judge."""
