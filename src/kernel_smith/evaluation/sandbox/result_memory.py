"""Where a candidate's tensors live on the device: memory that the judge can read by itself.

PyTorch takes the memory of a pool from the functions below, in large chunks. The judge opens the
chunks and reads results without the process's help, at the moment that it chooses.
"""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any, Literal

import torch

from kernel_smith.evaluation.sandbox.device_memory import DeviceError, DeviceMemory, granularity

_CHUNK = 64 << 20  # that smaller pieces share; a larger one has a chunk to itself
_MUCH = 64 << 20
_Allocate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
_Free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)

Use = Literal["plain", "captured"]
"""What calls are made for: to be run, or to be recorded as a graph."""


class ResultMemory:
    def __init__(self) -> None:
        self._chunks: list[DeviceMemory] = []
        self._former: list[DeviceMemory] = []  # that somebody still uses
        self._used: dict[int, int] = {}  # address of a chunk -> bytes of it that PyTorch has
        self._shared: DeviceMemory | None = None  # the chunk that small pieces are taken from
        self._left = 0  # of that
        self._returned: dict[int, list[int]] = {}
        self._announced = 0
        # Kept alive: PyTorch holds their addresses only.
        self._functions = (_Allocate(self._allocate), _Free(self._free))
        self._abandoned: list[torch.cuda.MemPool] = []
        self._serves: Use | None = None
        self.pool = self._new_pool()

    def in_use(self) -> contextlib.AbstractContextManager[Any]:
        """What this thread allocates meanwhile comes from here."""
        return torch.cuda.use_mem_pool(self.pool)

    def turn_to(self, use: Use) -> None:
        """Let memory that served plain calls serve a captured one, or the other way round.

        PyTorch keeps what was freed for the stream that it was used on, and those are two. In
        another pool the same memory is anybody's.
        """
        much = sum(self._used.values()) > _MUCH
        if much and self._serves not in (None, use):
            self.pool = self._new_pool()
            torch.cuda.empty_cache()
        self._serves = use

    def abandon_pool(self) -> None:
        """After a capture that failed, and for which PyTorch still allocates from the pool.

        Its allocator for the host holds on to the pool as well, and cannot be told to let go. So
        another one takes its place, with the same memory.
        """
        with contextlib.suppress(RuntimeError):
            torch._C._cuda_endAllocateToPool(torch.cuda.current_device(), self.pool.id)
        self._abandoned.append(self.pool)
        self.pool = self._new_pool()

    def _new_pool(self) -> torch.cuda.MemPool:
        allocate, free = (ctypes.cast(f, ctypes.c_void_p).value or 0 for f in self._functions)
        return torch.cuda.MemPool(torch._C._cuda_customAllocator(allocate, free))

    def reset(self) -> None:
        """Give back what no tensor uses any more. The judge forgets all chunks as well."""
        self._former += self._chunks
        self._chunks, self._left, self._returned, self._announced = [], 0, {}, 0
        self._shared = None
        self.pool = self._new_pool()  # the last one goes, and with it what it kept
        torch.cuda.empty_cache()
        for chunk in [c for c in self._former if not self._used.get(c.address)]:
            self._former.remove(chunk)
            self._used.pop(chunk.address, None)
            chunk.close()

    def locate(self, address: int) -> tuple[int, int] | None:
        """The chunk that an address lies in, and where in it."""
        for index, chunk in enumerate(self._chunks):
            if chunk.contains(address):
                return index, address - chunk.address
        return None

    def announce(self, most: int) -> tuple[list[int], list[int]]:
        """Sizes and descriptors of chunks that the judge does not know yet, at most so many."""
        new = self._chunks[self._announced : self._announced + most]
        self._announced += len(new)
        return [chunk.size for chunk in new], [chunk.export() for chunk in new]

    def _allocate(self, size: int, device: int, stream: int | None) -> int | None:
        size = -(-size // granularity()) * granularity()
        if self._returned.get(size):
            address = self._returned[size].pop()
            self._note(address, size)
            return address
        try:
            address = self._take(size)
        except DeviceError:
            return None  # PyTorch calls that out of memory
        self._note(address, size)
        return address

    def _take(self, size: int) -> int:
        """Return the address of fresh memory."""
        if size >= _CHUNK:
            self._chunks.append(DeviceMemory.create(size))
            return self._chunks[-1].address
        if self._shared is None or self._left < size:
            self._shared = DeviceMemory.create(_CHUNK)
            self._chunks.append(self._shared)
            self._left = _CHUNK
        self._left -= size
        return self._shared.address + self._shared.size - self._left - size

    def _note(self, address: int, change: int) -> bool:
        """Keep count of what is used; does the address belong to a chunk that results may use?"""
        for chunk in (*self._chunks, *self._former):
            if chunk.contains(address):
                self._used[chunk.address] = self._used.get(chunk.address, 0) + change
                return chunk in self._chunks
        return False

    def _free(self, address: int, size: int, device: int, stream: int | None) -> None:
        size = -(-size // granularity()) * granularity()
        if self._note(address, -size):
            self._returned.setdefault(size, []).append(address)
