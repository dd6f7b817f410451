"""Pictures of runs and benchmark results: the data behind them, one HTML file, a live page."""
