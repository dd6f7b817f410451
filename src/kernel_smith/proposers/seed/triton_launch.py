"""Writes launches of Triton kernels of our own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_SMALLEST_BLOCK = 16  # of what Triton multiplies


def launch(
    name: str, grid: Sequence[str], operands: Sequence[str], numbers: Mapping[str, object]
) -> str:
    """Return the text of one; a grid with one axis is a tuple as well."""
    given = [*operands, *(f"{key}={value!r}" for key, value in numbers.items())]
    axes = f"{grid[0]}," if len(grid) == 1 else ", ".join(grid)
    return f"{name}[({axes})]({', '.join(given)})"


def block_of(size: int, largest: int) -> int:
    """Return a power of two that is not much larger than what there is."""
    return min(largest, max(_SMALLEST_BLOCK, 1 << (size - 1).bit_length()))
