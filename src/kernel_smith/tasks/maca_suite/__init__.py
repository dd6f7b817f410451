"""Operators of the families that chips are brought up with, with CUDA and MACA kernels."""
