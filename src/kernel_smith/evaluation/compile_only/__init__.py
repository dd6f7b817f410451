"""Compiling candidates for a GPU that this machine need not have."""

from kernel_smith.evaluation.compile_only.run import compile_only
from kernel_smith.evaluation.compile_only.targets import Target, find_target
from kernel_smith.evaluation.compile_only.texts import compile_texts

__all__ = ["Target", "compile_only", "compile_texts", "find_target"]
