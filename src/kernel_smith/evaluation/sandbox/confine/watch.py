"""The monitor's eye on a confined process: memory and tasks, counted from outside.

Counted is what the process tree holds, however it was obtained: private memory, also when swapped
out or in huge pages, the page tables themselves, and shared memory beyond what was handed over.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PRIVATE = ("RssAnon", "VmSwap", "HugetlbPages", "VmPTE")
_SHARED = ("RssShmem",)
_ENDED = (FileNotFoundError, ProcessLookupError)
"""What reading about a process raises that ends meanwhile, at any moment of it."""
_FIELD = re.compile(r"^(\w+):\s+(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Usage:
    private_bytes: int = 0
    shared_bytes: int = 0
    tasks: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.private_bytes + other.private_bytes,
            self.shared_bytes + other.shared_bytes,
            self.tasks + other.tasks,
        )


@dataclass(kw_only=True)
class Watch:
    """Says whether process `pid` and its descendants hold more than they may."""

    pid: int
    memory_bytes: int
    processes: int
    baseline: int = 0
    """Private bytes that a confined process begins with: `usage(pid).private_bytes`."""
    shared_allowance: int = 0
    """Shared memory that was handed over, and so is not its own."""
    _seen_alone: int | None = None
    """How long it had run when all was well and it had no children."""

    def exceeded(self) -> str | None:
        """A sentence on what is exceeded; None if nothing is, or if the process has ended."""
        run = _nanoseconds_run(self.pid)
        if run is None or run == self._seen_alone:  # many wait most of the time, and looking costs
            return None
        tree = list(_tree(self.pid))
        reason = self._reason(tree)
        self._seen_alone = run if reason is None and len(tree) == 1 else None
        return reason

    def _reason(self, tree: list[int]) -> str | None:
        total = sum(map(usage, tree), start=Usage())
        extra = max(0, total.shared_bytes - self.shared_allowance)
        memory = total.private_bytes - self.baseline + extra
        if memory > self.memory_bytes:
            return f"{memory} bytes of memory are in use, {self.memory_bytes} are allowed"
        if total.tasks > self.processes:
            return f"{total.tasks} processes and threads exist, {self.processes} are allowed"
        return None


def usage(pid: int) -> Usage:
    """What one process uses; nothing if it has ended."""
    fields = {name: int(value) for name, value in _FIELD.findall(_read(f"/proc/{pid}/status"))}
    return Usage(
        private_bytes=1024 * sum(fields.get(name, 0) for name in _PRIVATE),
        shared_bytes=1024 * sum(fields.get(name, 0) for name in _SHARED),
        tasks=fields.get("Threads", 0),
    )


def _nanoseconds_run(pid: int) -> int | None:
    """Of the process alone, with all of its threads; None if it has ended."""
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        return None


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for thread in _threads(pid):
        for child in _read(f"/proc/{pid}/task/{thread}/children").split():
            yield from _tree(int(child))


def _threads(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except _ENDED:
        return []


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except _ENDED:
        return ""
