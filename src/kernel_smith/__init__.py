"""kernel-smith: an evolutionary optimizer for compute kernels."""

__version__ = "0.1.0"
