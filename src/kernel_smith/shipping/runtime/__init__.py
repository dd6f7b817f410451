"""What a replaced module needs while it runs.

These files are copied into every saved folder, so they import one another relatively, and beside
that torch and the standard library alone.
"""
