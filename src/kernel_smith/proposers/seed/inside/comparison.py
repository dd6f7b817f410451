"""Compares a result with the reference's, block by block: both may fill the device."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

_RTOL = {torch.float64: 1e-6, torch.float32: 2e-3, torch.float16: 1e-2, torch.bfloat16: 4e-2}
_COARSE = 0.15

# With what is computed in between, a block takes some 100 MB.
_BLOCK_ELEMENTS = 1 << 22
# Many small blocks see more of a big tensor than a few big ones.
_SAMPLE_BLOCK_ELEMENTS = 1 << 14
_SAMPLE_BLOCKS = 1 << 10

Index = tuple[slice, ...]


@dataclass(frozen=True)
class Kept:
    """What is kept of a tensor to compare another one with: blocks, and where they were."""

    shape: torch.Size
    dtype: torch.dtype
    blocks: list[tuple[Index, torch.Tensor]]

    @property
    def compared(self) -> int:
        """Count the elements that are kept."""
        return sum(block.numel() for _, block in self.blocks)


@dataclass(frozen=True)
class Tally:
    """How many elements of a tensor are wrong, and how many are NaN on one side only."""

    elements: int
    wrong: int
    nan_on_one_side: int


def keep_all(tensor: torch.Tensor) -> Kept:
    """Keep all of a tensor, where it is."""
    indices = block_indices(tensor.shape, _BLOCK_ELEMENTS)
    return Kept(tensor.shape, tensor.dtype, [(index, tensor[index]) for index in indices])


def keep_sample(tensor: torch.Tensor) -> Kept:
    """Keep the first block, the last, and others by chance, in the machine's memory."""
    indices = list(block_indices(tensor.shape, _SAMPLE_BLOCK_ELEMENTS))
    if len(indices) > _SAMPLE_BLOCKS:
        between = random.Random(7).sample(indices[1:-1], _SAMPLE_BLOCKS - 2)
        indices = [indices[0], *between, indices[-1]]
    blocks = [(index, tensor[index].to("cpu", copy=True)) for index in indices]
    return Kept(tensor.shape, tensor.dtype, blocks)


def block_indices(shape: Sequence[int], limit: int) -> Iterator[Index]:
    """Cut a tensor of any strides into blocks of at most so many elements."""
    if math.prod(shape) <= limit:
        yield ()
        return
    inner = math.prod(shape[1:])
    rows = max(1, limit // inner)
    for start in range(0, shape[0], rows):
        for rest in block_indices(shape[1:], limit):
            yield (slice(start, start + rows), *rest)


def difference(actual: Any, expected: Any) -> str | None:
    """Say what is wrong with a result, or None; `expected` holds tensors, or what is kept of them.

    Tensors are compared at the precision of their type.
    """
    mine, mine_spec = pytree.tree_flatten(actual)
    theirs, spec = pytree.tree_flatten(expected)
    if mine_spec != spec:
        return f"it returns {mine_spec}, not {spec}"
    for index, (one, other) in enumerate(zip(mine, theirs, strict=True)):
        kept = keep_all(other) if isinstance(other, torch.Tensor) else other
        if isinstance(kept, Kept):
            problem = _tensor_difference(one, kept)
            if problem:
                return f"output {index} {problem}"
        elif one != other:
            return f"output {index} is {one!r}, not {other!r}"
    return None


def _tensor_difference(actual: Any, expected: Kept) -> str | None:
    if not isinstance(actual, torch.Tensor):
        return f"is {actual!r}, not a tensor"
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return f"is {actual.dtype} {tuple(actual.shape)}"
    tally = compare(actual, expected)
    if tally.nan_on_one_side:
        return "has NaN in other places"
    share = tally.wrong / max(tally.elements, 1)
    if expected.dtype.is_floating_point:
        return f"is off in {share:.1%} of its elements" if share > 1e-3 else None
    # Rounding to integers, and choosing among equals, may go either way.
    return f"differs in {share:.1%} of its elements" if share > 0.01 else None


def compare(actual: torch.Tensor, expected: Kept) -> Tally:
    """Count the elements that are wrong among those that are kept."""
    counts = torch.zeros(2, dtype=torch.int64, device=actual.device)
    floating = expected.dtype.is_floating_point
    rtol = _RTOL.get(expected.dtype, _COARSE) if floating else 0.0
    atol = rtol * _scale(expected) if floating else 0.0
    for index, block in expected.blocks:
        mine, theirs = _widened(actual[index]), _widened(block.to(actual.device))
        if floating:
            wrong = ~torch.isclose(mine, theirs, rtol=rtol, atol=atol, equal_nan=True)
            lone = wrong & (mine.isnan() | theirs.isnan())
            counts += torch.stack([wrong.sum(), lone.sum()])
        else:
            counts[0] += (mine != theirs).sum()
    wrong_ones, lone_ones = counts.tolist()
    return Tally(expected.compared, wrong_ones, lone_ones)


def _widened(block: torch.Tensor) -> torch.Tensor:
    """Convert narrow floating-point numbers to those that all operations know."""
    narrow = block.is_floating_point() and block.dtype.itemsize < 4
    return block.float() if narrow else block


def _scale(expected: Kept) -> float:
    """Find how big elements are on average, of those that are finite."""
    sums = []
    for _, block in expected.blocks:
        size = _widened(block).abs()
        finite = size.isfinite()
        total = size.masked_fill_(~finite, 0).sum(dtype=torch.float64)
        sums.append(torch.stack([total, finite.sum()]))
    total_size, count = torch.stack(sums).sum(0).tolist()
    return float(total_size / count) if count else 0.0
