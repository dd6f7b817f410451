"""Benchmarks: suites of problems, arms that solve them, scores with intervals, and comparisons."""
