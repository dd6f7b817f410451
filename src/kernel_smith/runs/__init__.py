"""Runs: from a working kernel to a faster one, step by step, whatever the method."""
