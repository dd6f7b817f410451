"""Reading results straight from the memory of another process, without its help.

A process that hands its results over could go on computing meanwhile. Read by the judge while the
process is stopped, results are what they were at that moment. `permitted` tells whether the
operating system lets the judge do so (`process_vm_readv`, which some containers refuse).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

from kernel_smith.evaluation.judge.evidence.profile import read_maps

_MOST_AT_ONCE = 512  # the kernel takes up to 1024
_LARGEST_PIECE = 1 << 30  # it copies less than 2 GiB in a call
_libc = ctypes.CDLL(None, use_errno=True)
_libc.process_vm_readv.restype = ctypes.c_ssize_t


class Piece(NamedTuple):
    """Memory of the other process, and where to put it in this one."""

    source: int
    target: int
    size: int


class _Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def permitted(pid: int) -> bool:
    """Can this process read the memory of that one?"""
    try:
        first = int(read_maps(pid).partition("-")[0], 16)
    except (OSError, ValueError):
        return False
    probe = ctypes.create_string_buffer(1)
    return _read(pid, [Piece(first, ctypes.addressof(probe), 1)])


def fetch(pid: int, pieces: Sequence[Piece]) -> None:
    """Copy what can be read; memory that does not exist leaves its target as it was."""
    large = [piece for piece in pieces if piece.size > _LARGEST_PIECE]
    for piece in large:
        for start in range(0, piece.size, _LARGEST_PIECE):
            size = min(_LARGEST_PIECE, piece.size - start)
            _read(pid, [Piece(piece.source + start, piece.target + start, size)])
    pieces = [piece for piece in pieces if piece.size <= _LARGEST_PIECE]
    for start in range(0, len(pieces), _MOST_AT_ONCE):
        chunk = pieces[start : start + _MOST_AT_ONCE]
        if not _read(pid, chunk):
            for piece in chunk:
                _read(pid, [piece])


def _read(pid: int, pieces: Sequence[Piece]) -> bool:
    vectors = _Vector * len(pieces)
    sources = vectors(*[_Vector(piece.source, piece.size) for piece in pieces])
    targets = vectors(*[_Vector(piece.target, piece.size) for piece in pieces])
    count = len(pieces)
    copied = _libc.process_vm_readv(
        ctypes.c_int(pid), targets, ctypes.c_ulong(count), sources, ctypes.c_ulong(count), 0
    )
    return bool(copied == sum(piece.size for piece in pieces))
