"""Whether a result is right: how far off it may be, and how it compares."""
