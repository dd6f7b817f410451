"""Where a candidate's tensors live on the device: memory that the judge can read by itself.

PyTorch takes the memory of a pool from the functions below, in large chunks. The judge opens the
chunks and reads results without the process's help, at the moment that it chooses.
"""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any

import torch

from kernel_smith.evaluation.sandbox.device_memory import DeviceError, DeviceMemory, granularity

_CHUNK = 256 << 20
_Allocate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
_Free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)


class ResultMemory:
    def __init__(self) -> None:
        self._chunks: list[DeviceMemory] = []
        self._former: list[DeviceMemory] = []  # that somebody still uses
        self._used: dict[int, int] = {}  # address of a chunk -> bytes of it that PyTorch has
        self._left = 0  # of the last chunk
        self._returned: dict[int, list[int]] = {}
        self._announced = 0
        # Kept alive: PyTorch holds their addresses only.
        self._functions = (_Allocate(self._allocate), _Free(self._free))
        self._abandoned: list[torch.cuda.MemPool] = []
        self.pool = self._new_pool()

    def in_use(self) -> contextlib.AbstractContextManager[Any]:
        """What this thread allocates meanwhile comes from here."""
        return torch.cuda.use_mem_pool(self.pool)

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
            if self._left < size:
                self._chunks.append(DeviceMemory.create(max(size, _CHUNK)))
                self._left = self._chunks[-1].size
        except DeviceError:
            return None  # PyTorch calls that out of memory
        chunk = self._chunks[-1]
        address = chunk.address + chunk.size - self._left
        self._left -= size
        self._note(address, size)
        return address

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
