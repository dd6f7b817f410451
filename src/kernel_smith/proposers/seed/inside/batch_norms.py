"""Batch norms in training whose statistics are as exact as the library's.

On a CPU it adds single precision up in double, and the compiler in single, which shows where the
mean is large beside the spread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

aten = torch.ops.aten
_GATHERING = (
    aten._native_batch_norm_legit.default,
    aten._native_batch_norm_legit.no_stats,
    aten._native_batch_norm_legit_functional.default,
    aten.native_batch_norm.default,
)


def batch_norms_in_double(
    known: Mapping[Any, Callable[..., Any]],
) -> dict[Any, Callable[..., Any]]:
    """Return what stands for them when a graph is taken apart. `known`: what usually does."""
    return {norm: _in_double(norm, known[norm]) for norm in _GATHERING if norm in known}


def _in_double(norm: Any, usual: Callable[..., Any]) -> Callable[..., Any]:
    place = [argument.name for argument in norm._schema.arguments].index("training")

    def compute(x: torch.Tensor, *others: Any) -> Any:
        training = others[place - 1]
        if not training or x.dtype is not torch.float32:
            return usual(x, *others)
        return tuple(part.to(x.dtype) for part in usual(x.double(), *others))

    return compute
