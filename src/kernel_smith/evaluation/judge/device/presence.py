"""Is there a GPU that evaluations can run on, and has it room left?"""

from __future__ import annotations

import functools

import torch

from kernel_smith.evaluation.judge.device.quiet import Quiet

_CROWDED = 0.3  # of the device's memory in sets and answers of earlier tasks


@functools.cache
def is_usable() -> bool:
    return torch.cuda.is_available()


@functools.cache
def quiet() -> Quiet:
    """The first use of the device: what the judge computes there is to be exact."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    return Quiet()


def is_crowded() -> bool:
    """Do the tasks that are kept ready take up so much that the next one may not fit?"""
    return torch.cuda.memory_allocated() > _CROWDED * _total_memory()


@functools.cache
def _total_memory() -> int:
    if not is_usable():
        return 0
    return int(torch.cuda.get_device_properties(0).total_memory)
