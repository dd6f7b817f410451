"""Counts in words."""

from __future__ import annotations


def counted(number: int, word: str) -> str:
    """`1 step`, `2 steps`, `10,000 steps`."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"
