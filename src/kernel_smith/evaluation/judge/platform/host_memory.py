"""How much of the machine's memory the judge may use, and whether a task finds room in it."""

from __future__ import annotations

import contextlib
import functools
import time
from pathlib import Path

from kernel_smith.errors import NotEnoughMemory
from kernel_smith.evaluation.judge.inputs.budget import Budget
from kernel_smith.evaluation.judge.inputs.footprint import foresee
from kernel_smith.evaluation.judge.platform.memory_claims import Claims, Level
from kernel_smith.records import Task, Workload

_SHARE_KEPT = 64  # of what is available: by the sets of one workload, of several tasks and lanes
_LEAST_KEPT, _MOST_KEPT = 64 << 20, 256 << 20
_AT_ONCE = 16 << 20
_LOOK_SECONDS = 0.5
_FAR_TOO_SMALL = 64  # times what inputs take, to fill a memory
_GIB = 1 << 30
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
_CGROUP_USED = Path("/sys/fs/cgroup/memory.current")


def available() -> int:
    """Return the bytes that programs can take before the machine, or its control group, is full."""
    found = [_read_meminfo("MemAvailable")]
    with contextlib.suppress(OSError, ValueError):  # no group, or one without a limit
        found.append(int(_CGROUP_LIMIT.read_text()) - int(_CGROUP_USED.read_text()))
    return max(0, min(found))


@functools.cache
def claims() -> Claims:
    """The memory of this machine as lanes share it."""
    return Claims("host", _level)


def _level() -> Level:
    """A control group's limit is not told apart from the machine's: what is available is."""
    total = _read_meminfo("MemTotal")
    return Level(total, max(0, total - available()))


def budget() -> Budget:
    """Share out what is available now."""
    free = available()
    kept = min(_MOST_KEPT, max(_LEAST_KEPT, free // _SHARE_KEPT))
    return Budget(kept, _AT_ONCE, free // 2)


def demand(task: Task, workload: Workload) -> None:
    """Wait until judging finds room. Raises `NotEnoughMemory` where waiting does not help."""
    footprint = foresee(task, workload, available() // _FAR_TOO_SMALL)
    while footprint is not None and footprint.lane > (free := available()):
        others = claims().of_others()
        if footprint.lane > free + others:
            raise NotEnoughMemory(
                f"this machine's memory does not suffice for task {task.name}: judging "
                f"takes up to {footprint.lane / _GIB:.1f} GiB, and {free / _GIB:.1f} GiB are "
                f"available; workload {workload.name}: {footprint}",
                hint="end other programs, or give the task smaller workloads",
            )
        time.sleep(_LOOK_SECONDS)


def _read_meminfo(name: str) -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) << 10
    return 0
