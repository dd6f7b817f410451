"""Where tensors lie in memory that a process shares with the judge."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from kernel_smith.evaluation.sandbox.arena import Layout, Slot, contiguous_stride, dtype_name


def place_all(layout: Layout, tensors: dict[str, torch.Tensor]) -> dict[str, Slot]:
    return {
        name: layout.place(t.shape, contiguous_stride(t.shape), t.dtype)
        for name, t in tensors.items()
    }


def largest_of_each(examples: Sequence[list[torch.Tensor]]) -> list[torch.Tensor]:
    """Per argument the example that needs most room."""
    return [
        max(variants, key=lambda t: Slot(0, t.shape, t.stride(), dtype_name(t.dtype)).nbytes)
        for variants in zip(*examples, strict=True)
    ]


def slots_at(bases: Sequence[int], tensors: Sequence[torch.Tensor]) -> list[Slot]:
    return [
        Slot(base, tuple(t.shape), tuple(t.stride()), dtype_name(t.dtype))
        for base, t in zip(bases, tensors, strict=True)
    ]
