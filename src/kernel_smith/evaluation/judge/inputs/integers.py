"""Which integers among the inputs are free: drawn one by one, without regard to one another.

Those can be mixed and varied like numbers. Others mean something together: offsets are sorted, page
tables name each page once, one-hot rows have one bit. They are only ever taken as they were drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from kernel_smith.evaluation.judge.inputs.reference import InputSet
from kernel_smith.evaluation.judge.values.pieces import same_bits

FEWEST_ELEMENTS = 24  # of fewer, chance cannot be told from order
_MOST_ELEMENTS = 1 << 16  # that are looked at


def are_integers(tensor: torch.Tensor) -> bool:
    return not tensor.is_floating_point() and not tensor.is_complex()


def free_integers(draws: Sequence[InputSet]) -> list[bool]:
    """Per input tensor: does it hold integers that are free, as far as these draws tell?"""
    if len({tuple(t.shape for t in drawn.tensors) for drawn in draws}) > 1:
        return [False] * len(draws[0].tensors)
    columns = zip(*(drawn.tensors for drawn in draws), strict=True)
    return [_are_free(list(same)) for same in columns]


def vary_between(draws: Sequence[InputSet]) -> list[bool]:
    """Per input tensor: is it another one in each draw?"""
    columns = zip(*(drawn.tensors for drawn in draws), strict=True)
    return [any(not same_bits(same[0], other) for other in same[1:]) for same in columns]


def _are_free(draws: list[torch.Tensor]) -> bool:
    first = draws[0]
    if not are_integers(first) or first.numel() < FEWEST_ELEMENTS:
        return False
    if all(same_bits(first, other) for other in draws[1:]):
        return False
    samples = [some_rows(tensor).long() for tensor in draws]
    is_ordered = all(bool((rows.diff(dim=-1) >= 0).all()) for rows in samples)
    is_unique = all(bool(rows.sort(-1).values.diff(dim=-1).all()) for rows in samples)
    sums = {int(total) for rows in samples for total in rows.sum(-1)}
    return not (is_ordered or is_unique or len(sums) == 1)


def some_rows(tensor: torch.Tensor) -> torch.Tensor:
    """Leading rows of the last dimension, as many as are looked at."""
    width = tensor.shape[-1] if tensor.shape[-1] > 1 else tensor.numel()
    return tensor.reshape(-1, width)[: max(1, _MOST_ELEMENTS // width)]
