"""Reading results straight from the memory of another process, and overwriting them there.

A process that hands its results over could go on computing meanwhile. Read by the judge while the
process is stopped, results are what they were at that moment. Overwritten then, they are of no use
to whoever gets the memory next. `permitted` tells whether the operating system lets the judge do so
(`process_vm_readv` and `process_vm_writev`, which some containers refuse).
"""

from __future__ import annotations

import ctypes
import mmap
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch

from kernel_smith.evaluation.judge.evidence.profile import read_maps

_MOST_AT_ONCE = 512  # the kernel takes up to 1024
_LARGEST_PIECE = 1 << 30  # it copies less than 2 GiB in a call
_libc = ctypes.CDLL(None, use_errno=True)
_libc.process_vm_readv.restype = ctypes.c_ssize_t
_libc.process_vm_writev.restype = ctypes.c_ssize_t
_FILLING = 256 << 10  # bytes to overwrite others with, again and again: they stay in the cache


class Piece(NamedTuple):
    """Memory of the other process, and memory of this one."""

    there: int
    here: int
    size: int


class Place(NamedTuple):
    """Memory of the other process that is to be filled."""

    address: int
    size: int
    begin: int  # where in the filling


class Fillings:
    """Bytes to fill memory with: other ones for each page, over and over after some pages.

    Where a page lies in several places, it holds at most what was written to one of them.
    """

    def __init__(self, bytes_: Sequence[int]) -> None:
        self._of_pages = list(bytes_)
        pages = torch.tensor(self._of_pages, dtype=torch.uint8)
        self._once = pages.repeat_interleave(mmap.PAGESIZE)
        self.period = self._once.numel()
        # Whatever begins in the first period lies there in one piece.
        self._bytes = self._once.repeat(1 + -(-_FILLING // self.period))

    def address(self, begin: int) -> int:
        """Of what fills memory from this byte on."""
        return self._bytes.data_ptr() + begin % self.period

    def at(self, begin: int) -> int:
        """Return the byte that is written there."""
        return self._of_pages[begin % self.period // mmap.PAGESIZE]

    def content(self, begin: int, size: int) -> torch.Tensor:
        turned = self._once.roll(-(begin % self.period))
        return turned.repeat(-(-size // self.period))[:size]


def permitted(pid: int) -> bool:
    """Can this process read the memory of that one?"""
    try:
        first = int(read_maps(pid).partition("-")[0], 16)
    except (OSError, ValueError):
        return False
    probe = ctypes.create_string_buffer(1)
    return _copy(_libc.process_vm_readv, pid, [Piece(first, ctypes.addressof(probe), 1)])


def fetch(pid: int, pieces: Sequence[Piece]) -> list[int]:
    """Copy what can be read; which pieces, by their places in the list, are not all there?"""
    parts = [(part, index) for index, piece in enumerate(pieces) for part in _cut(piece)]
    failed = _copy_all(_libc.process_vm_readv, pid, [part for part, _ in parts])
    return sorted({parts[number][1] for number in failed})


def overwrite(pid: int, places: Sequence[Place], fillings: Fillings) -> list[int]:
    """Fill memory of that process; which places cannot be written to?"""
    pieces, belongs_to = [], []
    for number, place in enumerate(places):
        for start in range(0, place.size, _FILLING):
            here = fillings.address(place.begin + start)
            pieces.append(Piece(place.address + start, here, min(_FILLING, place.size - start)))
            belongs_to.append(number)
    failed = _copy_all(_libc.process_vm_writev, pid, pieces)
    return sorted({belongs_to[index] for index in failed})


def _cut(piece: Piece) -> Iterator[Piece]:
    for start in range(0, piece.size, _LARGEST_PIECE):
        size = min(_LARGEST_PIECE, piece.size - start)
        yield Piece(piece.there + start, piece.here + start, size)


def _copy_all(call: Any, pid: int, pieces: Sequence[Piece]) -> list[int]:
    """Many at once, and one by one where some fail; which ones do?"""
    failed = []
    for start in range(0, len(pieces), _MOST_AT_ONCE):
        chunk = pieces[start : start + _MOST_AT_ONCE]
        small = sum(piece.size for piece in chunk) <= _LARGEST_PIECE
        if not (small and _copy(call, pid, chunk)):
            failed += [start + i for i, p in enumerate(chunk) if not _copy(call, pid, [p])]
    return failed


def _copy(call: Any, pid: int, pieces: Sequence[Piece]) -> bool:
    # Arrays of struct iovec: where something begins, and how long it is.
    theirs = array("Q", [number for piece in pieces for number in (piece.there, piece.size)])
    ours = array("Q", [number for piece in pieces for number in (piece.here, piece.size)])
    count = ctypes.c_ulong(len(pieces))
    places = [ctypes.c_void_p(vectors.buffer_info()[0]) for vectors in (ours, theirs)]
    copied = call(ctypes.c_int(pid), places[0], count, places[1], count, ctypes.c_ulong(0))
    return bool(copied == sum(piece.size for piece in pieces))
