"""How lanes share one memory: each says what its evaluation will take, and waits while others hold
too much of it.

A claim vanishes with its process. Whoever waits holds nothing and keeps its place in the queue, so
two lanes never wait for each other, and a large evaluation is not overtaken for ever.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

_LOOK_SECONDS = 0.1


class Level(NamedTuple):
    """How full a memory is, in bytes."""

    total: int
    used: int


class Claims:
    """The claims on one memory, of all judges of this user on this machine."""

    def __init__(self, memory: str, level: Callable[[], Level]) -> None:
        folder = Path(tempfile.gettempdir())
        name = f"kernel-smith-memory-{os.getuid()}-{memory}"
        self._book = folder / f"{name}.json"
        self._lock = folder / f"{name}.lock"
        self._door = folder / f"{name}-door.lock"
        self._level = level

    @contextlib.contextmanager
    def holding(self, wanted: int, waiting: Callable[[int], None]) -> Iterator[None]:
        """Have so much while the block runs. `waiting` hears once what others hold, if they must
        give some of it back first; alone, nobody waits."""
        with _locked(self._door):
            told = False
            while not self._take(wanted):
                if not told:
                    waiting(self.of_others())
                    told = True
                time.sleep(_LOOK_SECONDS)
        try:
            yield
        finally:
            with self._claims() as claims:
                claims.pop(os.getpid(), None)

    def of_others(self) -> int:
        """Return the bytes that other judges have claimed."""
        with self._claims() as claims:
            return sum(size for pid, size in claims.items() if pid != os.getpid())

    def _take(self, wanted: int) -> bool:
        with self._claims() as claims:
            others = sum(size for pid, size in claims.items() if pid != os.getpid())
            total, used = self._level()
            strangers = max(0, used - others)
            if others and wanted > total - strangers - others:
                return False
            claims[os.getpid()] = wanted
            return True

    @contextlib.contextmanager
    def _claims(self) -> Iterator[dict[int, int]]:
        """The claims of living processes; what is changed is kept."""
        with _locked(self._lock):
            known: dict[str, int] = {}
            with contextlib.suppress(OSError, ValueError):
                known = json.loads(self._book.read_text())
            claims = {int(pid): size for pid, size in known.items() if _lives(int(pid))}
            yield claims
            kept = {str(pid): size for pid, size in claims.items()}
            if kept != known:
                self._book.write_text(json.dumps(kept))


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
