"""Edits of CUDA, MACA and HIP texts inside a candidate."""
