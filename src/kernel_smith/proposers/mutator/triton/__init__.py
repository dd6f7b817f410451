"""Edits of Triton kernels in a candidate."""
