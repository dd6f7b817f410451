"""Shared memory for tensors: one anonymous file, mapped by the judge and by one child process.

The judge decides the layout. A child only ever gets its own arenas, so it can neither see the
inputs of another process nor write to the outputs of one.
"""

from __future__ import annotations

import fcntl
import functools
import math
import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

_ALIGNMENT = 256


@dataclass(frozen=True)
class Slot:
    """Where one tensor lies in an arena."""

    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str

    @functools.cached_property
    def nbytes(self) -> int:
        return extent_bytes(self.shape, self.stride, resolve_dtype(self.dtype))

    def to_json(self) -> list[Any]:
        return [self.offset, self.shape, self.stride, self.dtype]

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> Slot:
        offset, shape, stride, dtype = data
        return cls(int(offset), tuple(shape), tuple(stride), str(dtype))


def resolve_dtype(name: str) -> torch.dtype:
    dtype = getattr(torch, name)
    assert isinstance(dtype, torch.dtype)
    return dtype


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def extent_bytes(shape: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> int:
    """Bytes from the first to the last element of a strided tensor."""
    if math.prod(shape) == 0:
        return 0
    last = sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
    return (last + 1) * dtype.itemsize


def contiguous_stride(shape: Sequence[int]) -> tuple[int, ...]:
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


class Layout:
    """Assigns aligned places in an arena, one after the other."""

    def __init__(self) -> None:
        self.size = 0

    def place(self, shape: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> Slot:
        slot = Slot(self.size, tuple(shape), tuple(stride), dtype_name(dtype))
        self.size += -(-max(slot.nbytes, 1) // _ALIGNMENT) * _ALIGNMENT
        return slot

    def like(self, tensor: torch.Tensor) -> Slot:
        return self.place(tensor.shape, tensor.stride(), tensor.dtype)


class Arena:
    """Memory for tensors, shared or not. Views keep it alive; closing the descriptor does not."""

    def __init__(self, content: torch.Tensor, fd: int = -1) -> None:
        self._bytes = content
        self.fd = fd

    @classmethod
    def open(cls, fd: int, size: int) -> Arena:
        return cls(_map(fd, size), fd)

    @classmethod
    def private(cls, size: int, device: str = "cpu") -> Arena:
        """The same in ordinary memory, for results that the judge fetches itself."""
        return cls(torch.empty(max(size, 1), dtype=torch.uint8, device=device))

    @classmethod
    def create(cls, size: int) -> Arena:
        fd = os.memfd_create("kernel-smith-arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        size = max(size, mmap.PAGESIZE)
        os.ftruncate(fd, size)
        # Without the seals a child could shrink the file and so crash the judge with SIGBUS.
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
        return cls.open(fd, size)

    @property
    def size(self) -> int:
        return self._bytes.numel()

    def view(self, slot: Slot) -> torch.Tensor:
        dtype = resolve_dtype(slot.dtype)
        if slot.nbytes == 0:
            return self._bytes.new_empty(slot.shape, dtype=dtype)
        flat = self._bytes[slot.offset : slot.offset + slot.nbytes].view(dtype)
        return flat.as_strided(slot.shape, slot.stride)

    def rows(self, first: Slot, count: int, step: int) -> torch.Tensor:
        """Equally spaced tensors of one kind as the rows of a matrix."""
        dtype = resolve_dtype(first.dtype)
        size = math.prod(first.shape)
        whole = self._bytes[first.offset : first.offset + (count - 1) * step + first.nbytes]
        padded = whole.new_empty(0).view(dtype) if size == 0 else whole.view(dtype)
        return padded.as_strided((count, size), (step // dtype.itemsize, 1))

    def raw(self, start: int, end: int) -> torch.Tensor:
        return self._bytes[start:end]

    def address(self, slot: Slot) -> int:
        return self._bytes.data_ptr() + slot.offset

    def contains(self, address: int) -> bool:
        start = self._bytes.data_ptr()
        return start <= address < start + self.size

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def _map(fd: int, size: int) -> torch.Tensor:
    # Populated at once, so that page faults do not fall into the first timed calls.
    mapping = mmap.mmap(fd, size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
    return torch.frombuffer(mapping, dtype=torch.uint8)
