"""New large input sets out of one that was drawn, at a fraction of a draw's cost.

As in `mixing.py`, nothing that a candidate may have seen returns. But two large sets are not kept
at once: where the rows of a set are problems of their own, each element comes from its own row or
from another one of the same set.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import torch

from kernel_smith.evaluation.judge.inputs.integers import FEWEST_ELEMENTS
from kernel_smith.evaluation.judge.inputs.mixing import INTEGERS
from kernel_smith.evaluation.judge.inputs.reference import InputSet
from kernel_smith.evaluation.judge.inputs.rows import Rows

_FEWEST_ROWS = 16  # of fewer there are few mixtures
_PIECE = 1 << 17  # elements, so that a piece stays in the cache
_SHIFTS = 4096


def are_mixable(inputs: InputSet, rows: Rows) -> bool:
    """Would everything in a mixture be new? Every tensor must fall into rows, which differ."""
    return rows.count >= _FEWEST_ROWS and all(
        split and tensor.is_floating_point() and tensor.is_contiguous() and _rows_differ(tensor)
        for tensor, split in zip(inputs.tensors, rows.split, strict=True)
    )


def _rows_differ(tensor: torch.Tensor) -> bool:
    """Do most elements of the first row differ from those of others?"""
    if tensor[0].numel() < FEWEST_ELEMENTS:
        return False
    bits = tensor[:_FEWEST_ROWS].view(INTEGERS[tensor.dtype.itemsize]).flatten(1)
    return float((bits[1:] != bits[0]).float().mean()) > 0.5


def mix_rows(drawn: InputSet, seed: int) -> InputSet:
    """The mixture of this seed, the same each time."""
    dice = random.Random(seed)
    distance = dice.randrange(1, len(drawn.tensors[0]))  # in rows
    tensors = [_mixed(tensor, distance, dice) for tensor in drawn.tensors]
    return InputSet(drawn.template, tensors)


def _mixed(tensor: torch.Tensor, distance: int, dice: random.Random) -> torch.Tensor:
    kind = INTEGERS[tensor.dtype.itemsize]
    generator = torch.Generator().manual_seed(dice.getrandbits(63))
    size = min(_PIECE, tensor.numel()) + _SHIFTS
    mask = -torch.randint(2, (size,), dtype=kind, generator=generator)  # all bits or none
    mixed = torch.empty_like(tensor)
    source, target = (t.view(kind).flatten() for t in (tensor, mixed))
    for start, stop, other in _pieces(source.numel(), distance * tensor[0].numel()):
        shift = dice.randrange(_SHIFTS)
        own = source[start:stop]
        place = target[start:stop]
        torch.bitwise_xor(own, source[other : other + stop - start], out=place)
        place.bitwise_and_(mask[shift : shift + stop - start]).bitwise_xor_(own)
    return mixed


def _pieces(size: int, distance: int) -> Iterator[tuple[int, int, int]]:
    """Where each piece begins and ends, and where that begins which lies `distance` ahead of it,
    after the end from the start."""
    for first, last, ahead in ((0, size - distance, distance), (size - distance, size, 0)):
        for start in range(first, last, _PIECE):
            yield start, min(start + _PIECE, last), start - first + ahead
