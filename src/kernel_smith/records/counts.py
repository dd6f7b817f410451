"""Counts in words."""

from __future__ import annotations


def counted(number: int, word: str, many: str = "") -> str:
    """Return `1 step`, `2 steps`, `10,000 steps`; `many` where the plural takes more than an s."""
    return f"{number:,} {word if number == 1 else many or f'{word}s'}"
