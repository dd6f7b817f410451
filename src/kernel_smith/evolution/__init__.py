"""The evolution of one task: from a working kernel to a faster one, step by step."""
