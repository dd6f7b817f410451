"""Device memory that two processes share, by the C functions of CUDA's virtual memory interface.

One process creates a piece and exports it as a file descriptor, the other opens that. In contrast
to CUDA IPC this works between processes of different users, which judge and candidate are. MetaX
and AMD have the same functions by other names.
"""

from __future__ import annotations

import ctypes
import functools
import os
from ctypes import byref, c_int, c_size_t, c_ubyte, c_uint64, c_ushort, c_void_p
from typing import Any, NamedTuple

import torch

from kernel_smith.evaluation.sandbox.arena import Arena
from kernel_smith.inline.gpu import vendor_of_torch


class _Interface(NamedTuple):
    library: str
    prefix: str
    """Of its functions' names."""


_INTERFACES = {
    "cuda": _Interface("libcuda.so.1", "cu"),
    "maca": _Interface("libmcruntime.so", "mc"),
    "hip": _Interface("libamdhip64.so", "hip"),
}
_PINNED, _ON_DEVICE, _AS_DESCRIPTOR, _READ_WRITE = 1, 1, 1, 3
_STACK_SIZE = 0  # of the limits of a context
_LITTLE_STACK = 256  # bytes per thread, of the 1024 that are usual


class DeviceError(RuntimeError):
    """A function of the driver failed."""


class _Location(ctypes.Structure):
    _fields_ = [("kind", c_int), ("number", c_int)]


class _Flags(ctypes.Structure):
    _fields_ = [
        ("compression", c_ubyte),
        ("rdma", c_ubyte),
        ("usage", c_ushort),
        ("reserved", c_ubyte * 4),
    ]


class _Properties(ctypes.Structure):
    _fields_ = [
        ("kind", c_int),
        ("handles", c_int),
        ("location", _Location),
        ("windows", c_void_p),
        ("flags", _Flags),
    ]


class _Access(ctypes.Structure):
    _fields_ = [("location", _Location), ("rights", c_int)]


class _Described:
    """Memory at an address, as libraries that know CUDA take it over without a copy."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
            "strides": None,
        }


class DeviceMemory:
    """A piece of device memory, mapped into this process."""

    def __init__(self, handle: int, size: int) -> None:
        self.size = size
        self._handle = handle
        self.address = _map(handle, size)
        self.content = torch.as_tensor(_Described(self.address, size), device="cuda")

    @classmethod
    def create(cls, size: int) -> DeviceMemory:
        size = -(-max(size, 1) // granularity()) * granularity()
        handle = c_uint64()
        _call("MemCreate", byref(handle), c_size_t(size), byref(_properties()), c_uint64(0))
        return cls(handle.value, size)

    @classmethod
    def open(cls, fd: int, size: int) -> DeviceMemory:
        """Open what another process exported, and close the descriptor."""
        handle = c_uint64()
        try:
            _call("MemImportFromShareableHandle", byref(handle), c_void_p(fd), _AS_DESCRIPTOR)
        finally:
            os.close(fd)
        return cls(handle.value, size)

    def export(self) -> int:
        """A descriptor for another process; the caller closes it."""
        fd = c_int()
        handle = c_uint64(self._handle)
        _call("MemExportToShareableHandle", byref(fd), handle, _AS_DESCRIPTOR, c_uint64(0))
        return fd.value

    def contains(self, address: int) -> bool:
        return self.address <= address < self.address + self.size

    def close(self) -> None:
        """Unmap it. Nobody may use a view of it from now on."""
        if self._handle:
            torch.cuda.synchronize()
            _call("MemUnmap", c_uint64(self.address), c_size_t(self.size))
            _call("MemAddressFree", c_uint64(self.address), c_size_t(self.size))
            _call("MemRelease", c_uint64(self._handle))
            self._handle = 0


class DeviceArena(Arena):
    """An arena in device memory."""

    def __init__(self, memory: DeviceMemory, fd: int = -1) -> None:
        super().__init__(memory.content, fd)
        self._memory = memory

    @classmethod
    def open(cls, fd: int, size: int) -> DeviceArena:
        return cls(DeviceMemory.open(fd, size))

    @classmethod
    def create(cls, size: int) -> DeviceArena:
        memory = DeviceMemory.create(size)
        return cls(memory, memory.export())

    def close(self) -> None:
        super().close()
        self._memory.close()


@functools.cache
def granularity() -> int:
    """Sizes are multiples of this."""
    found = c_size_t()
    _call("MemGetAllocationGranularity", byref(found), byref(_properties()), 0)
    return found.value


def forget_persisting_lines() -> None:
    """Give the whole L2 cache back to ordinary use, whoever reserved parts of it."""
    if vendor_of_torch() == "cuda":
        _call("CtxResetPersistingL2Cache")


def keep_little_stack() -> None:
    """Have the driver set less memory aside for the stacks of this process's threads: 0.2 GiB less
    on a large device. It takes more by itself where a kernel's frame needs it."""
    if vendor_of_torch() == "cuda":
        _call("CtxSetLimit", _STACK_SIZE, c_size_t(_LITTLE_STACK))


def _properties() -> _Properties:
    here = _Location(_ON_DEVICE, torch.cuda.current_device())
    return _Properties(_PINNED, _AS_DESCRIPTOR, here, None, _Flags())


def _map(handle: int, size: int) -> int:
    address, nothing = c_uint64(), c_uint64(0)
    _call("MemAddressReserve", byref(address), c_size_t(size), c_size_t(0), nothing, nothing)
    _call("MemMap", address, c_size_t(size), c_size_t(0), c_uint64(handle), nothing)
    access = _Access(_Location(_ON_DEVICE, torch.cuda.current_device()), _READ_WRITE)
    _call("MemSetAccess", address, c_size_t(size), byref(access), c_size_t(1))
    return address.value


def _call(name: str, *arguments: Any) -> None:
    prefix = _INTERFACES[vendor_of_torch()].prefix
    code = getattr(_driver(), prefix + name)(*arguments)
    if code:
        raise DeviceError(f"{prefix}{name}: {_explained(prefix, code)} ({code})")


def _explained(prefix: str, code: int) -> str:
    explain = getattr(_driver(), f"{prefix}GetErrorString")
    if prefix == "cu":
        text = ctypes.c_char_p()
        explain(code, byref(text))
        return (text.value or b"unknown error").decode()
    explain.restype = ctypes.c_char_p
    return (explain(code) or b"unknown error").decode()


@functools.cache
def _driver() -> ctypes.CDLL:
    """The driver's library; a context of this process must exist, which torch has made."""
    torch.zeros(1, device="cuda")
    return ctypes.CDLL(_INTERFACES[vendor_of_torch()].library)
