"""Gives a program's module the reference's parameters and statistics, in memory that both share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from kernel_smith.evaluation.sandbox.arena import Slot

_WORDS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def counterparts(
    own: Iterable[tuple[str, torch.Tensor]], slots: dict[str, Any]
) -> Iterator[tuple[str, Any, Slot]]:
    """Yield the tensors of a module for which the judge has values, by name and shape."""
    for name, tensor in own:
        if name in slots:
            slot = Slot.from_json(slots[name])
            if tuple(tensor.shape) == slot.shape:
                yield name, tensor, slot


def adopt(parameter: torch.nn.Parameter, values: torch.Tensor) -> bool:
    """Give a parameter the reference's values; was it drawn differently?

    A program may have prepared a parameter in its constructor. One in another precision or layout
    keeps its own memory; one that holds the same values in another order, or integers in place of
    floating point numbers, is left as it is.
    """
    drawn = parameter.detach()
    alike = torch.equal(drawn, values.to(drawn.dtype))
    if not alike and (
        drawn.is_floating_point() != values.is_floating_point() or rearranged(drawn, values)
    ):
        return False
    if drawn.dtype == values.dtype and drawn.stride() == values.stride():
        parameter.data = values
    elif not alike:
        parameter.data.copy_(values)
    return not alike


def rearranged(drawn: torch.Tensor, values: torch.Tensor) -> bool:
    """Are these the same values in another order, as after a transposition or packing? To sort
    them takes many times their memory; hardly any others have the same sum."""
    if not drawn.is_floating_point() or drawn.numel() != values.numel():
        return False
    values = values.to(drawn.dtype)
    if _sum_of_bits(drawn) != _sum_of_bits(values):
        return False
    mine, theirs = (t.double().flatten().sort().values for t in (drawn, values))
    return torch.equal(mine, theirs)


def _sum_of_bits(tensor: torch.Tensor) -> int:
    """Sum the elements up as integers, which is exact in any order; the two zeros are one."""
    bits = (tensor + 0.0).flatten().view(_WORDS[tensor.dtype.itemsize])
    return int(bits.sum(dtype=torch.int64))
