"""Results of one byte: where two programs round differently, they are a step apart.

A kernel that quantises gets a value between two steps now and then, and rounds it the other way
than the reference did. To ask the oracle about each takes longer than all the rest of an
evaluation.
"""

from __future__ import annotations

import torch

_FEW_ELEMENTS = 8
_FEW = 0.01


def is_few(count: int, size: int) -> bool:
    """Not so many elements that no rounding error explains them?"""
    return count <= max(_FEW_ELEMENTS, _FEW * size)


def a_step_apart(got: torch.Tensor, want: torch.Tensor) -> bool:
    """Do these differ in a few elements at most, each by one step of their type?"""
    if want.dtype.itemsize > 1 or want.dtype == torch.bool or got.dtype != want.dtype:
        return False
    if want.is_floating_point() and not torch.equal(got.float().isnan(), want.float().isnan()):
        return False
    distance = (_numbered(got) - _numbered(want)).abs_()
    further = bool((distance > 1).any())
    return not further and is_few(int(distance.count_nonzero()), distance.numel())


def _numbered(values: torch.Tensor) -> torch.Tensor:
    """The place of each value among all that its type has, in order; both zeros share one."""
    if not values.is_floating_point():
        return values.to(torch.int16)
    bits = values.view(torch.int8).to(torch.int16)
    return torch.where(bits < 0, -(bits & 0x7F), bits)
