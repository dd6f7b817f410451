"""Sweeps: variants of an accepted program, compiled side by side and timed in one process."""
