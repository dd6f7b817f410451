"""Mixtures of two input sets, element by element: new content at a fraction of a draw's cost.

A candidate can remember the rows, tiles or vectors that it has seen, and copy their results when
they return. Where each element comes from either set at random, none of them returns.
"""

from __future__ import annotations

import random

import torch

from kernel_smith.evaluation.judge.reference import InputSet

_SHIFTS = 4096
_FEWEST_ELEMENTS = 24  # of fewer there are too few mixtures
_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

_system_random = random.SystemRandom()


class Mixer:
    """Mixes sets that have the shapes of the one it was made for."""

    def __init__(self, like: InputSet) -> None:
        # Drawing takes longer than mixing, so masks are drawn once and then shifted.
        self._masks = [_draw_mask(t) if _mixable(t) else None for t in like.tensors]

    @property
    def changes_something(self) -> bool:
        return any(mask is not None for mask in self._masks)

    @staticmethod
    def choose_shift() -> int:
        """Which of the many mixtures of two sets to make."""
        return _system_random.randrange(_SHIFTS)

    def mix(self, left: InputSet, right: InputSet, shift: int) -> InputSet:
        tensors = [
            a if mask is None else _blend(a, b, mask[shift : shift + a.numel()])
            for a, b, mask in zip(left.tensors, right.tensors, self._masks, strict=True)
        ]
        return InputSet(left.template, tensors)


def _mixable(tensor: torch.Tensor) -> bool:
    """Integers may be indices or offsets: left alone."""
    return tensor.is_floating_point() and tensor.numel() >= _FEWEST_ELEMENTS


def _draw_mask(tensor: torch.Tensor) -> torch.Tensor:
    """Per element all bits or none, at random."""
    kind = _INTEGERS[tensor.dtype.itemsize]
    return -torch.randint(2, (tensor.numel() + _SHIFTS,), dtype=kind, device=tensor.device)


def _blend(left: torch.Tensor, right: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """`left` where the mask has bits, `right` elsewhere; on bits, which is the fastest way."""
    a, b = left.view(mask.dtype), right.view(mask.dtype)
    placed = mask.as_strided(left.shape, left.stride())
    return (b ^ ((a ^ b) & placed)).view(left.dtype)
