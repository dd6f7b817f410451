"""What the trusted processes, and those forked from them, ask of their memory allocators."""

from __future__ import annotations

import ctypes
import os

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_MMAP_MAX = -1, -3, -4
_LARGEST_KEPT = 32 << 20  # where the C library's own adaptation ends, too
_NEVER = 1 << 30


def keep_freed_memory() -> None:
    """Do not return freed memory to the system. Call before torch is imported.

    A process that has run for long keeps what it uses again and again. A young one returns it and
    faults the pages in once more, now and then, depending on all that it did before: calls of 20 us
    differed by 5% between processes that ran the same code. PyTorch brings its own allocator on
    some platforms (mimalloc on aarch64) and uses the C library's on others.
    """
    os.environ["MIMALLOC_PURGE_DELAY"] = "-1"
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGEST_KEPT)
        libc.mallopt(_M_TRIM_THRESHOLD, _NEVER)


def keep_large_memory() -> None:
    """Keep even what is large, until it is trimmed. For a judge: to take half a gigabyte of fresh
    memory from the system takes longer than to compute with it. Not for those that it times, who
    are to pay for their memory as programs do."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_M_MMAP_MAX, 0)
        libc.mallopt(_M_TRIM_THRESHOLD, -1)


def trim_freed_memory() -> None:
    """Return to the system what was freed and kept after all."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)
