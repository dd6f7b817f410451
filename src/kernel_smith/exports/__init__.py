"""Runs for other programs: a table of steps, a trace over time, experiment trackers."""
