"""Durations as people read them."""

from __future__ import annotations


def seconds(value: float) -> str:
    """A duration with three digits and a fitting unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"
