"""Getting a core as soon as a moment has come, also beside others that want it.

Linux lets whoever wakes wait until the others have used up their slices of some milliseconds. A
real-time thread does not wait. Where that is not allowed, one that asks for short slices waits less
(Linux 6.12 and later; elsewhere nothing changes), unless it has just worked more than its share.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
from collections.abc import Iterator

_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}.get(platform.machine())
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")  # struct sched_attr as first published
_SHORTEST_SLICE = 100_000  # nanoseconds
_USUAL_SLICE = 0
_libc = ctypes.CDLL(None)


@contextlib.contextmanager
def prompt() -> Iterator[None]:
    """Have this thread wake up promptly meanwhile. It must not wait for anything in a loop without
    a pause: nobody else would get the core."""
    policy = os.sched_getscheduler(0)
    if policy not in (os.SCHED_OTHER, os.SCHED_BATCH):  # somebody knows better
        yield
        return
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        _ask_for_slices(policy, _SHORTEST_SLICE)
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, os.sched_param(0))
        _ask_for_slices(policy, _USUAL_SLICE)


def _ask_for_slices(policy: int, nanoseconds: int) -> None:
    if _SCHED_SETATTR is None:
        return
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    asked = _ATTRIBUTES.pack(_ATTRIBUTES.size, policy, 0, nice, 0, nanoseconds, 0, 0)
    _libc.syscall(_SCHED_SETATTR, 0, ctypes.create_string_buffer(asked), 0)
