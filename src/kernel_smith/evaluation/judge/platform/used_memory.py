"""Which memory of a process results have lain in so far.

Results come back to their process overwritten, and most of them lie where others lay before. Memory
that a result lies in for the first time may have been made ready long ago, when nobody looked at
the time: zeros that take as long to write as all the rest, for as many calls as there is room for.
"""

from __future__ import annotations

from collections.abc import Iterable

_BLOCK = 64 << 10  # bytes: to prepare less than that saves nothing


class UsedMemory:
    def __init__(self) -> None:
        self._blocks: set[int] = set()

    def add(self, places: Iterable[tuple[int, int]]) -> int:
        """Note where results lie, by address and size; how many bytes of that are new?"""
        before = len(self._blocks)
        for address, size in places:
            self._blocks.update(range(-(-address // _BLOCK), (address + size) // _BLOCK))
        return (len(self._blocks) - before) * _BLOCK
