"""Compiling what candidates bring, in a sandbox of its own."""
