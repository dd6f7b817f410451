"""Arithmetic that rounds a little differently each time.

Every floating point result is moved at random by up to two units in the last place, as another
order of operations or another implementation of a function would move it. What a program answers
under such noise, it may rightly answer. Whole numbers stay: they were rounded, counted, or given.
Values that are equal may be kept equal: most programs compute the same from the same.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from kernel_smith.evaluation.judge.operations import OperationMode

_UNITS = 2.0

_WHOLE = {2: torch.int16, 4: torch.int32, 8: torch.int64}  # as wide as numbers of so many bytes
_HALF = 32  # of 64 bits
_MORE_THAN_A_DOUBLE_HOLDS = 11  # of these
_LARGEST = 2.0**52  # of what is left of them

_system_random = random.SystemRandom()


class RoundingNoise(OperationMode):  # type: ignore[no-untyped-call]
    def __init__(self, *, keep_equal: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._draw = _of_each_value if keep_equal else _of_each_element

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.is_view:  # of something that was moved when it was computed
            return result
        move = self._move_in_place if func._schema.is_mutable else self._moved
        return tree_map_only(torch.Tensor, move, result)

    def _moved(self, tensor: torch.Tensor) -> torch.Tensor:
        return self._move_in_place(tensor.clone()) if _can_move(tensor) else tensor

    def _move_in_place(self, tensor: torch.Tensor) -> torch.Tensor:
        if _can_move(tensor):
            noise = self._draw(tensor)
            noise.mul_(torch.finfo(tensor.dtype).eps).masked_fill_(tensor == tensor.round(), 0.0)
            tensor.copy_(tensor.double() * (1 + noise))
        return tensor


def _of_each_element(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(tensor, dtype=torch.float64).uniform_(-_UNITS, _UNITS)


def _of_each_value(tensor: torch.Tensor) -> torch.Tensor:
    """Mix the bits of each with secret numbers: to sort the values takes a few times as long."""
    bits = tensor.contiguous().view(_WHOLE[tensor.dtype.itemsize])
    mixed = bits.long().mul(_odd()).add_(_odd())
    mixed = (mixed ^ (mixed >> _HALF)).mul_(_odd()).add_(_odd())
    return (mixed >> _MORE_THAN_A_DOUBLE_HOLDS).double().mul_(_UNITS / _LARGEST)


def _odd() -> int:
    """A secret odd number of 64 bits, with a sign."""
    return 2 * _system_random.getrandbits(63) + 1 - (1 << 63)


def _can_move(tensor: torch.Tensor) -> bool:
    """Numbers of eight bits are codes rather than results: their neighbours are far away."""
    return tensor.is_floating_point() and tensor.dtype.itemsize > 1
