"""What the GPU is, what it can do at best, and what bounds a kernel on it."""
