"""Is there a GPU that evaluations can run on, and has it room left?"""

from __future__ import annotations

import contextlib
import functools
import gc
import warnings
from collections.abc import Iterator

import torch

from kernel_smith.evaluation.judge.inputs.budget import Budget
from kernel_smith.evaluation.judge.platform.device_lock import DeviceLock, Need
from kernel_smith.evaluation.judge.platform.memory_claims import Claims, Level
from kernel_smith.evaluation.judge.platform.quiet import Quiet
from kernel_smith.evaluation.sandbox.device_memory import keep_little_stack

_CROWDED = 0.5  # of the device's memory, if less is free
_TIGHT = 0.15  # the same: to give memory back and take it again at every step costs time
_ARENA_SHARE = (
    1 / 512
)  # of what is free: per process, of several judges with several processes each
_OCCUPIED_CYCLES = 500_000_000
_SMALLEST_ARENA, _LARGEST_ARENA = 64 << 20, 256 << 20
_SHARE_KEPT = 256  # of what is free: by the sets of one workload, of several tasks and lanes
_LEAST_KEPT, _MOST_KEPT = 64 << 20, 512 << 20
_AT_ONCE = 64 << 20
# For a request just below it, which is rounded up to an even number of megabytes, torch makes a
# block above it, and uses that for none like it again. Nothing of ours is of that size.
_LARGEST_SPLIT_MB = 129


@functools.cache
def is_usable() -> bool:
    return torch.cuda.is_available()


@functools.cache
def quiet() -> Quiet:
    """The first use of the device: what the judge computes there is to be exact."""
    _avoid_fragments()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    keep_little_stack()
    return Quiet()


def _avoid_fragments() -> None:
    """Have no small tensors put into large pieces of memory: a task that is kept ready would hold
    on to gigabytes that it once computed in."""
    with warnings.catch_warnings():  # of a name to come, which is not in all versions
        warnings.simplefilter("ignore", FutureWarning)
        torch.cuda.memory._set_allocator_settings(f"max_split_size_mb:{_LARGEST_SPLIT_MB}")


def is_crowded() -> bool:
    """Is so much taken, by tasks that are kept ready here or elsewhere, that the next one may not
    fit?"""
    return is_usable() and _share_free() < _CROWDED


def arena_bytes() -> int:
    """How much memory the inputs and results of one batch may take."""
    free, _ = torch.cuda.mem_get_info()
    return min(_LARGEST_ARENA, max(_SMALLEST_ARENA, int(_ARENA_SHARE * free)))


@functools.cache
def turns() -> DeviceLock:
    return DeviceLock()


@contextlib.contextmanager
def occupied() -> Iterator[None]:
    """While the device is busy with work of this process for a quarter of a second. Another process
    gets slices of milliseconds in between, so what it launches within one waits, and then starts
    together, unless one follows the other."""
    torch.cuda.synchronize()
    torch.cuda._sleep(_OCCUPIED_CYCLES)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        torch.cuda.synchronize()


@functools.cache
def need_of_memory() -> Need:
    return Need()


@functools.cache
def claims() -> Claims:
    """The memory of the device as lanes share it."""
    return Claims("gpu-0", _level)


def memory() -> tuple[int, int]:
    """Return how many bytes are free, and how many there are."""
    return torch.cuda.mem_get_info()


def _level() -> Level:
    free, total = memory()
    return Level(total, total - free)


def budget() -> Budget:
    """Share out the memory that is free now, or was freed and kept by this process."""
    free = torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved()
    free -= torch.cuda.memory_allocated()
    kept = min(_MOST_KEPT, max(_LEAST_KEPT, free // _SHARE_KEPT))
    return Budget(kept, _AT_ONCE, free // 2)


def make_room(unused: int | None = None) -> None:
    """For others, if there is little: what a step has freed, the next one need not have. Or if
    more than `unused` bytes were freed here: large pieces are not split, and serve only what is
    nearly as large, so they would pile up."""
    if not is_usable():
        return
    freed = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    if _share_free() < _TIGHT or (unused is not None and freed > unused):
        torch.cuda.empty_cache()


def _share_free() -> float:
    free, total = torch.cuda.mem_get_info()
    return free / total


def give_memory_back() -> None:
    """What was freed is kept for the next use, unless somebody says that it is not needed."""
    if is_usable():
        gc.collect()
        torch.cuda.empty_cache()
