"""How an input set is made: the author's draw from a secret seed, and what is then done to it.

A set that is drawn again by its recipe is the same, to the bit; so large ones need not be kept.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from kernel_smith.evaluation.judge.inputs.checks import Block
from kernel_smith.evaluation.judge.inputs.reference import (
    AUTHOR,
    InputSet,
    secret_seed,
)
from kernel_smith.evaluation.judge.inputs.rows import Rows
from kernel_smith.evaluation.judge.inputs.varying import vary_tensor
from kernel_smith.records import Variant

Draw = Callable[[int], InputSet]
"""Makes a set of the author's distribution, the same for the same seed."""
_BLOCK_BYTES = 64 << 20  # that is changed at once


@dataclass(frozen=True)
class Recipe:
    """The seeds of one input set, and which rows of it are of which kind."""

    seed: int
    variant_seed: int
    blocks: tuple[Block, ...]

    @classmethod
    def of(cls, blocks: Sequence[Block]) -> Recipe:
        return cls(secret_seed(), secret_seed(), tuple(blocks))

    def make(self, draw: Draw, rows: Rows | None, free_integers: Sequence[bool] = ()) -> InputSet:
        """Draw the set."""
        inputs = draw(self.seed)
        generator = torch.Generator().manual_seed(self.variant_seed)
        for block in self.blocks:
            if block.label != AUTHOR:
                _vary_rows(inputs, rows, block, generator, free_integers)
        label = self.blocks[0].label if len(self.blocks) == 1 else AUTHOR
        return InputSet(inputs.template, inputs.tensors, label)


def medley(rows: Rows, labels: Sequence[str]) -> tuple[Block, ...]:
    """Share the rows out among kinds of inputs, so that one call is checked on all of them."""
    count = min(len(labels), rows.count)
    edges = [index * rows.count // count for index in range(count + 1)]
    pairs = itertools.pairwise(edges)
    return tuple(Block(*edge, label) for edge, label in zip(pairs, labels, strict=False))


def _vary_rows(
    inputs: InputSet,
    rows: Rows | None,
    block: Block,
    generator: torch.Generator,
    free_integers: Sequence[bool],
) -> None:
    """Change some rows in place, or all of everything, a few at a time."""
    variant = Variant(block.label)
    split = [True] * len(inputs.tensors) if rows is None else rows.split
    free = free_integers or [False] * len(split)
    for tensor, chosen, is_free in zip(inputs.tensors, split, free, strict=True):
        if not chosen or not tensor.numel():
            continue
        tensor = tensor if tensor.dim() else tensor.view(1)
        first, last = (0, len(tensor)) if rows is None else (block.start, block.stop)
        step = max(1, _BLOCK_BYTES // tensor[0].nbytes)
        for start in range(first, last, step):
            part = tensor[start : min(start + step, last)]
            part.copy_(vary_tensor(part, variant, generator, free=is_free))
