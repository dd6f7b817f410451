"""Results of one byte: where two programs round differently, they are a step apart.

A kernel that quantises gets a value between two steps now and then, and rounds it the other way
than the reference did. To ask the oracle about each takes longer than all the rest of an
evaluation.
"""

from __future__ import annotations

import torch


def count_a_step_apart(got: torch.Tensor, want: torch.Tensor) -> int | None:
    """How many elements differ by one step of their type; None if any differs by more, or if the
    type has more than a byte."""
    if want.dtype.itemsize > 1 or want.dtype == torch.bool or got.dtype != want.dtype:
        return None
    if want.is_floating_point() and not torch.equal(got.float().isnan(), want.float().isnan()):
        return None
    distance = (_numbered(got) - _numbered(want)).abs_()
    return None if bool((distance > 1).any()) else int(distance.count_nonzero())


def _numbered(values: torch.Tensor) -> torch.Tensor:
    """The place of each value among all that its type has, in order; both zeros share one."""
    if not values.is_floating_point():
        return values.to(torch.int16)
    bits = values.view(torch.int8).to(torch.int16)
    return torch.where(bits < 0, -(bits & 0x7F), bits)
