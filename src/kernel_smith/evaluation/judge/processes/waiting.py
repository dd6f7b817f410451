"""How long a thread was ready to run, and waited because somebody else had the core.

Beside busy neighbours a batch takes several times as long, and never twice the same. The operating
system counts what it made a thread wait, to the nanosecond, and whoever waited cannot change that.
"""

from __future__ import annotations

import contextlib
import functools
import os

_OWN = "/proc/thread-self/schedstat"


class Waiting:
    """Reads how long the main thread of a process has waited, or the thread that makes this."""

    def __init__(self, pid: int | None = None) -> None:
        path = _OWN if pid is None else f"/proc/{pid}/task/{pid}/schedstat"
        self._file = -1
        with contextlib.suppress(OSError):  # a kernel that does not count it
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def seconds(self) -> float:
        """In all; nothing where it is not counted."""
        try:
            return int(os.pread(self._file, 100, 0).split()[1]) / 1e9
        except (OSError, IndexError, ValueError):
            return 0.0

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class Neighbours:
    """Time that others took from the judge and from a process, which is timed on so many cores."""

    def __init__(self, pid: int, cores: int) -> None:
        self._process = Waiting(pid)
        self._cores = cores

    def seconds(self) -> float:
        """How long judge and process were kept waiting for a core. Of the process this is known
        where one core is timed: on several, threads of its own could make each other wait."""
        own = _here().seconds()
        return own + self._process.seconds() if self._cores == 1 else own

    def without(self, waited: float, wall: float, cpu: float) -> float:
        """What a batch would have taken without neighbours: no less than was computed."""
        return max(wall - waited, min(wall, cpu / self._cores))

    def close(self) -> None:
        self._process.close()


@functools.cache
def _here() -> Waiting:
    return Waiting()
