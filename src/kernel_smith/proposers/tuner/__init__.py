"""Tuning: other numbers in the same program."""

from kernel_smith.proposers.tuner.tuner import Tuner

__all__ = ["Tuner"]
