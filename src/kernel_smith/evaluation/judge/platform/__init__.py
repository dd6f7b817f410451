"""Where candidates run: memory, processes and locks of the CPU and of a GPU."""
