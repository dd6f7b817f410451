"""Mixtures of two input sets, element by element: new content at a fraction of a draw's cost.

A candidate can remember the rows, tiles or vectors that it has seen, and copy their results when
they return. Where each element comes from either set at random, none of them returns. Integers are
mixed where they are free; where some mean something together, sets cannot be mixed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch

from kernel_smith.evaluation.judge.inputs.integers import (
    FEWEST_ELEMENTS,
    free_integers,
    vary_between,
)
from kernel_smith.evaluation.judge.inputs.reference import InputSet

_SHIFTS = 4096
INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""What elements of so many bytes are taken for, to be mixed as bits."""


class Mixer:
    """Mixes sets of the same shapes, of which some were drawn."""

    def __init__(self, draws: Sequence[InputSet]) -> None:
        like, free = draws[0].tensors, free_integers(draws)
        mixable = [_mixable(t, is_free) for t, is_free in zip(like, free, strict=True)]
        # Drawing takes longer than mixing, so masks are drawn once and then shifted.
        self.masks = [_draw_mask(t) if mix else None for t, mix in zip(like, mixable, strict=True)]
        self._vary = vary_between(draws)
        self._few = [tensor.numel() < FEWEST_ELEMENTS for tensor in like]

    @property
    def changes_all(self) -> bool:
        """Is there nothing left that a candidate could recognise? Of few elements there are few
        mixtures, and little to be computed ahead."""
        changed = [mask is not None for mask in self.masks]
        rest = zip(changed, self._vary, self._few, strict=True)
        return any(changed) and all(is_new or few or not varies for is_new, varies, few in rest)

    @staticmethod
    def choose_shift(dice: random.Random) -> int:
        """Which of the many mixtures of two sets to make."""
        return dice.randrange(_SHIFTS)

    def mix(self, left: InputSet, right: InputSet, shift: int) -> InputSet:
        tensors = [
            a if mask is None else _blend(a, b, mask[shift : shift + a.numel()])
            for a, b, mask in zip(left.tensors, right.tensors, self.masks, strict=True)
        ]
        return InputSet(left.template, tensors)


class BlockMixer:
    """Mixes many sets at once, for a device that takes longer to ask than to answer."""

    def __init__(self, mixer: Mixer, pool: list[InputSet]) -> None:
        self._masks = mixer.masks
        self._pool = pool
        self._device = next((m.device for m in self._masks if m is not None), None)
        self._stacks = [
            None if mask is None else torch.stack([s.tensors[i] for s in pool]).view(mask.dtype)
            for i, mask in enumerate(self._masks)
        ]

    def mix(self, mixtures: list[tuple[int, int, int]]) -> list[InputSet]:
        """Each mixture names two sets of the pool and a shift."""
        left, right, shift = torch.tensor(mixtures, device=self._device).unbind(1)
        mixed = [
            None if stack is None or mask is None else _blend_rows(stack, mask, left, right, shift)
            for stack, mask in zip(self._stacks, self._masks, strict=True)
        ]
        return [
            self._assemble(self._pool[left], row, mixed)
            for row, (left, _, _) in enumerate(mixtures)
        ]

    @staticmethod
    def _assemble(like: InputSet, row: int, mixed: list[torch.Tensor | None]) -> InputSet:
        tensors = [
            old if rows is None else rows[row].view(old.dtype)
            for old, rows in zip(like.tensors, mixed, strict=True)
        ]
        return InputSet(like.template, tensors)


def _blend_rows(
    stack: torch.Tensor,
    mask: torch.Tensor,
    left: torch.Tensor,
    right: torch.Tensor,
    shift: torch.Tensor,
) -> torch.Tensor:
    size = stack[0].numel()
    masks = mask.as_strided((_SHIFTS, size), (1, 1))[shift].view(len(shift), *stack.shape[1:])
    blended = stack[left]
    others = stack[right]
    return blended.bitwise_xor_(others).bitwise_and_(masks).bitwise_xor_(others)


def _mixable(tensor: torch.Tensor, is_free: bool) -> bool:
    return (tensor.is_floating_point() or is_free) and tensor.numel() >= FEWEST_ELEMENTS


def _draw_mask(tensor: torch.Tensor) -> torch.Tensor:
    """Per element all bits or none, at random."""
    kind = INTEGERS[tensor.dtype.itemsize]
    return -torch.randint(2, (tensor.numel() + _SHIFTS,), dtype=kind, device=tensor.device)


def _blend(left: torch.Tensor, right: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """`left` where the mask has bits, `right` elsewhere; on bits, which is the fastest way."""
    a, b = left.view(mask.dtype), right.view(mask.dtype)
    placed = mask.as_strided(left.shape, left.stride())
    return (b ^ ((a ^ b) & placed)).view(left.dtype)
