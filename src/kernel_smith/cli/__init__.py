"""The command line: one file per command. Starts without importing torch."""
