"""How much of the machine's memory the judge may use."""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path

from kernel_smith.evaluation.judge.inputs.budget import Budget
from kernel_smith.evaluation.judge.platform.memory_claims import Claims, Level

_SHARE_KEPT = 64  # of what is available: by the sets of one workload, of several tasks and lanes
_LEAST_KEPT, _MOST_KEPT = 64 << 20, 256 << 20
_AT_ONCE = 16 << 20
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


def _read_meminfo(name: str) -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) << 10
    return 0
