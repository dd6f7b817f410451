"""What a record says beside the verdict: the machine, where the time went, and what limits it."""
