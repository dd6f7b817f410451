"""Memory of the device and of the machine: to know when it ran out, and to do with less."""

from __future__ import annotations

import errno
import gc
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

from kernel_smith.proposers.seed.host_memory import host_room, resident
from kernel_smith.proposers.seed.inside.pretend import has_gpu
from kernel_smith.proposers.seed.shortage import Room, tells_of_shortage

Result = TypeVar("Result")

_WORDS_OF_CUDA = ("cuda", "cublas", "cudnn", "hip")


def short_of(error: BaseException) -> str | None:
    """Name the device, `cuda` or `cpu`, whose want of memory led to an error; None if none did."""
    seen: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in seen:
        if _is_shortage(current):
            return "cuda" if _is_of_gpu(current) else "cpu"
        seen.append(current)
        context = None if current.__suppress_context__ else current.__context__
        current = current.__cause__ or context
    return None


def _is_shortage(error: BaseException) -> bool:
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, RuntimeError) and tells_of_shortage(str(error))


def _is_of_gpu(error: BaseException) -> bool:
    text = str(error).lower()
    named = any(word in text for word in _WORDS_OF_CUDA)
    return isinstance(error, torch.OutOfMemoryError) or named


def first_that_fits(steps: Sequence[Callable[[], Result]], make_room: Callable[[], None]) -> Result:
    """Try steps that need less and less memory; the last one's error is the caller's."""
    for step in steps[:-1]:
        try:
            return step()
        except Exception as error:
            if short_of(error) is None:
                raise
        make_room()  # not before the error is gone, whose frames hold tensors
    return steps[-1]()


def release() -> None:
    """Give back what nobody uses any more, also to other processes."""
    gc.collect()
    if has_gpu():
        torch.cuda.empty_cache()


def room_on(device: str) -> Room | None:
    """Find how much memory this process can have, with what it already has; None if unknown."""
    if device == "cpu":
        return host_room()
    try:
        free, total = torch.cuda.mem_get_info()
        ours = torch.cuda.memory_reserved()
        return Room(torch.cuda.get_device_name(), free + ours, total)
    except Exception:  # of many kinds, on a device that has no room even for a context
        return None


def has_room_for(count: int, device: str) -> bool:
    """Tell whether so many bytes more find room; where nobody knows, they may."""
    room = room_on(device)
    if room is None:
        return True
    used = torch.cuda.memory_allocated() if device == "cuda" else resident()
    return count <= room.available - used
