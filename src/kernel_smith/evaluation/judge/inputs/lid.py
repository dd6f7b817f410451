"""A lid on what a computation makes: it is stopped before the operation that exceeds it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Any

import torch

from kernel_smith.evaluation.judge.operations import OperationMode

_LARGEST_ELEMENT = 16


class Exceeded(Exception):
    """What was to be computed would not have fitted below the lid."""


class Lid(OperationMode):  # type: ignore[no-untyped-call]
    """`with Lid(most): ...`. An operation's result is taken for as large as it can be at most."""

    def __init__(self, most: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.exceeded = False  # an exception may have been turned into another
        self._left = most // _LARGEST_ELEMENT

    def __torch_dispatch__(
        self,
        func: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        self._left -= _most_elements(func, args)
        if self._left < 0:
            self.exceeded = True
            raise Exceeded(str(func))
        return func(*args, **(kwargs or {}))


def _most_elements(operation: Any, args: tuple[Any, ...]) -> int:
    """How many elements the result can have, as the sizes and tensors among the arguments say."""
    if operation.is_view or operation._schema.name.endswith("_"):  # makes nothing
        return 0
    tensors = [value for value in _flat(args) if isinstance(value, torch.Tensor)]
    if tensors and torch.Tag.pointwise in operation.tags:
        backwards = zip_longest(*(reversed(tensor.shape) for tensor in tensors), fillvalue=1)
        return math.prod(max(sizes) for sizes in backwards)
    sizes = [value for value in args if isinstance(value, list | tuple)]
    numbers = sizes if sizes and not tensors else args  # others are values, such as `full` has
    counts = [abs(int(n)) for n in _flat(numbers) if type(n) in (int, float) and math.isfinite(n)]
    return math.prod([tensor.numel() for tensor in tensors]) * math.prod(c for c in counts if c)


def _flat(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _flat(value)
        else:
            yield value
