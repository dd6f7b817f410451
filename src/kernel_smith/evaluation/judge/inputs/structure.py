"""Which numbers among the inputs belong together: sorted edges, symmetric matrices, rows that add
up to one.

A program may rely on what holds for all that the author draws, where no variant of the task says
otherwise. Made of two such tensors, element by element, another one would be none. So they are only
ever taken as they were drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from kernel_smith.evaluation.judge.inputs.integers import some_rows
from kernel_smith.evaluation.judge.inputs.reference import InputSet

_SAME = 1e-5  # sums of numbers that were drawn one by one differ by more, of however many


def belong_together(draws: Sequence[InputSet]) -> list[bool]:
    """Per input tensor: is there order among its numbers, in every draw?"""
    columns = zip(*(drawn.tensors for drawn in draws), strict=True)
    return [_has_order(list(same)) for same in columns]


def _has_order(draws: list[torch.Tensor]) -> bool:
    if not draws[0].is_floating_point() or draws[0].numel() < 2:
        return False
    samples = [some_rows(tensor).double() for tensor in draws]
    return all(map(_is_sorted, samples)) or _add_up(samples) or all(map(_is_symmetric, draws))


def _is_sorted(rows: torch.Tensor) -> bool:
    steps = rows.diff(dim=-1)
    return bool(steps.any()) and (bool((steps >= 0).all()) or bool((steps <= 0).all()))


def _add_up(samples: list[torch.Tensor]) -> bool:
    """Have all rows the same sum, or the same sum of squares?"""
    rows = torch.cat(samples)
    for sums in (rows.sum(-1), rows.square().sum(-1)):
        low, high = map(float, torch.aminmax(sums))
        if high - low <= _SAME * max(abs(low), abs(high)) < math.inf:  # false for NaN
            return True
    return False


def _is_symmetric(tensor: torch.Tensor) -> bool:
    if tensor.dim() < 2 or tensor.shape[-1] != tensor.shape[-2] or tensor.shape[-1] < 2:
        return False
    wide = tensor.float() if tensor.itemsize < 4 else tensor
    return torch.equal(wide, wide.mT) and bool((wide != wide.flatten()[0]).any())
