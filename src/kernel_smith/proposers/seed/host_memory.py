"""How much of the machine's memory a process of ours can have."""

from __future__ import annotations

import resource
from pathlib import Path

from kernel_smith.proposers.seed.shortage import Room

_CGROUP = Path("/sys/fs/cgroup")


def host_room() -> Room | None:
    """Find the memory that is there for this process, with what it already has; None if unknown."""
    try:
        facts = _facts(Path("/proc/meminfo"))
        ours = resident()
        total, available = facts["MemTotal"], facts["MemAvailable"] + ours
    except (OSError, KeyError, ValueError):
        return None
    limit = _container_limit()
    if limit is not None and limit < total:
        total, available = limit, min(available, limit - _container_use() + ours)
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        soft, _ = resource.getrlimit(kind)
        if soft != resource.RLIM_INFINITY:
            total, available = min(total, soft), min(available, soft)
    return Room("RAM", max(0, min(available, total)), total)


def resident() -> int:
    """Count the bytes of memory that this process has."""
    return _facts(Path("/proc/self/status"))["VmRSS"]


def _facts(path: Path) -> dict[str, int]:
    """Read lines such as `MemTotal: 24 kB`, as bytes."""
    rows = (line.split() for line in path.read_text().splitlines())
    return {row[0].rstrip(":"): 1024 * int(row[1]) for row in rows if row[2:] == ["kB"]}


def _container_limit() -> int | None:
    try:
        text = (_CGROUP / "memory.max").read_text().strip()
        return None if text == "max" else int(text)
    except (OSError, ValueError):
        return None


def _container_use() -> int:
    """Count the memory that cannot be had back: files that are only cached can."""
    try:
        used = int((_CGROUP / "memory.current").read_text())
        rows = (line.split() for line in (_CGROUP / "memory.stat").read_text().splitlines())
        return used - int(dict(rows).get("inactive_file", 0))
    except (OSError, ValueError):
        return 0
