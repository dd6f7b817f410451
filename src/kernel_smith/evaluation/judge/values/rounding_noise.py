"""Arithmetic that rounds a little differently each time.

Every floating point result is moved at random by up to two units in the last place, as another
order of operations or another implementation of a function would move it. What a program answers
under such noise, it may rightly answer. Whole numbers stay: they were rounded, counted, or given.
Values that are equal may be kept equal: most programs compute the same from the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from kernel_smith.evaluation.judge.operations import OperationMode

_UNITS = 2.0


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
    values, places = torch.unique(tensor, return_inverse=True)
    return _of_each_element(values)[places]


def _can_move(tensor: torch.Tensor) -> bool:
    """Numbers of eight bits are codes rather than results: their neighbours are far away."""
    return tensor.is_floating_point() and tensor.dtype.itemsize > 1
