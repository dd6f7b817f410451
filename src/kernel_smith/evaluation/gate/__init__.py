"""Compiling Triton candidates for a GPU that this machine need not have."""

from kernel_smith.evaluation.gate.run import compile_only
from kernel_smith.evaluation.gate.targets import Target, find_target

__all__ = ["Target", "compile_only", "find_target"]
