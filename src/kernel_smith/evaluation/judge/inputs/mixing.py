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
from kernel_smith.evaluation.judge.inputs.structure import belong_together

_SHIFTS = 4096
INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""What elements of so many bytes are taken for, to be mixed as bits."""


class Mixer:
    """Mixes sets of the same shapes, of which some were drawn."""

    def __init__(self, draws: Sequence[InputSet]) -> None:
        like, ordered = draws[0].tensors, belong_together(draws)
        numbers = [t.is_floating_point() and not o for t, o in zip(like, ordered, strict=True)]
        self._few = [tensor.numel() < FEWEST_ELEMENTS for tensor in like]
        mixable = [a or b for a, b in zip(numbers, free_integers(draws), strict=True)]
        # Drawing takes longer than mixing, so masks are drawn once and then shifted.
        self.masks = [
            _draw_mask(tensor) if mix and not few else None
            for tensor, mix, few in zip(like, mixable, self._few, strict=True)
        ]
        self._vary = vary_between(draws)
        self.averaged = [
            of_numbers and few and varies and not whole
            for of_numbers, few, varies, whole in zip(
                numbers, self._few, self._vary, _whole(draws), strict=True
            )
        ]

    @property
    def changes_all(self) -> bool:
        """Is there nothing left that a candidate could recognise?"""
        return self._changes([False] * len(self._few))

    @property
    def changes_all_but_few(self) -> bool:
        """The same, but for whole numbers, of which there are few in a set."""
        return self._changes(self._few)

    def _changes(self, excused: Sequence[bool]) -> bool:
        is_new = [mask is not None for mask in self.masks]
        each = zip(is_new, self.averaged, self._vary, excused, strict=True)
        return any(is_new) and all(
            new or averaged or excuse or not varies for new, averaged, varies, excuse in each
        )

    @staticmethod
    def choose_shift(dice: random.Random) -> int:
        """Which of the many mixtures of two sets to make."""
        return dice.randrange(_SHIFTS)

    def mix(self, left: InputSet, right: InputSet, shift: int) -> InputSet:
        pairs = zip(left.tensors, right.tensors, strict=True)
        tensors = [self._mixed(index, a, b, shift) for index, (a, b) in enumerate(pairs)]
        return InputSet(left.template, tensors)

    def _mixed(
        self, index: int, left: torch.Tensor, right: torch.Tensor, shift: int
    ) -> torch.Tensor:
        mask = self.masks[index]
        if mask is not None:
            return _blend(left, right, mask[shift:])
        return _average(left, right, share_of(shift)) if self.averaged[index] else left


class BlockMixer:
    """Mixes many sets at once, for a device that takes longer to ask than to answer."""

    def __init__(self, mixer: Mixer, pool: list[InputSet]) -> None:
        self._masks = mixer.masks
        self._averaged = mixer.averaged
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
        return [self._assemble(row, mixed, *mixture) for row, mixture in enumerate(mixtures)]

    def _assemble(
        self, row: int, mixed: list[torch.Tensor | None], left: int, right: int, shift: int
    ) -> InputSet:
        first, second = self._pool[left], self._pool[right]
        tensors = []
        for index, rows in enumerate(mixed):
            old = first.tensors[index]
            if rows is not None:
                old = rows[row].view(old.dtype)
            elif self._averaged[index]:
                old = _average(old, second.tensors[index], share_of(shift))
            tensors.append(old)
        return InputSet(first.template, tensors)


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


def share_of(shift: int) -> float:
    """Another one, between 0 and 1, for each mixture of two sets."""
    return (shift + 0.5) / _SHIFTS


def _average(left: torch.Tensor, right: torch.Tensor, share: float) -> torch.Tensor:
    """Of few numbers there are few mixtures: these lie between the two, where none was seen."""
    wide = torch.float64 if left.dtype is torch.float64 else torch.float32
    return torch.lerp(left.to(wide), right.to(wide), share).to(left.dtype)


def _whole(draws: Sequence[InputSet]) -> list[bool]:
    """Per input tensor: are all numbers in it whole, such as times that count steps?"""
    columns = zip(*(drawn.tensors for drawn in draws), strict=True)
    return [
        all(not t.is_floating_point() or torch.equal(w := t.double(), w.round()) for t in same)
        for same in columns
    ]


def _draw_mask(tensor: torch.Tensor) -> torch.Tensor:
    """Per element all bits or none, at random."""
    kind = INTEGERS[tensor.dtype.itemsize]
    return -torch.randint(2, (_span(tensor) + _SHIFTS,), dtype=kind, device=tensor.device)


def _blend(left: torch.Tensor, right: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """`left` where the mask has bits, `right` elsewhere; on bits, which is the fastest way.

    Both lie in memory in the same way, and so does the result: with gaps between elements, or the
    same ones several times.
    """
    span = _span(left)
    a, b = (t.as_strided((span,), (1,)).view(mask.dtype) for t in (left, right))
    return (b ^ ((a ^ b) & mask[:span])).view(left.dtype).as_strided(left.shape, left.stride())


def _span(tensor: torch.Tensor) -> int:
    """From the first element to the last one, in elements."""
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    return 1 + sum((size - 1) * step for size, step in pairs)
