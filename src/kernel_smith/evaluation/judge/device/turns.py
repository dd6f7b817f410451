"""Who may use the GPU: judges take short turns while they check, one has it alone while it times.

A GPU serves several processes by slices of milliseconds, so that each waits for all others at every
step; taking turns, two at a time, each works at nearly full speed, and one computes on the device
while the other does on its core. Whoever waits long for a candidate's process steps aside
meanwhile. The locks are advisory, hold across all judges of this machine, and vanish with their
process.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

PLACES = 2
_TURN_SECONDS = 0.02
AT_THE_DOOR = 0.2  # who wants to be alone keeps others out for so long, then steps aside
_ASIDE = 0.05
_LOOK_SECONDS = 0.001


class _Door:
    """Whoever waits holds the door, so that nobody can overtake."""

    def __init__(self, name: str) -> None:
        self._file = (Path(tempfile.gettempdir()) / f"{name}-door.lock").open("w")

    def __enter__(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def is_held(self) -> bool:
        if not _try_to_lock(self._file):
            return True
        fcntl.flock(self._file, fcntl.LOCK_UN)
        return False


class FairLock:
    """A lock between processes, for one alone or for many who share."""

    def __init__(self, name: str) -> None:
        self._door = _Door(name)
        self._lock = (Path(tempfile.gettempdir()) / f"{name}.lock").open("w")

    def share(self) -> None:
        with self._door:
            fcntl.flock(self._lock, fcntl.LOCK_SH)

    def take_alone(self) -> None:
        """Somebody may keep a share for long: others who share get in meanwhile."""
        while not self._take_within(AT_THE_DOOR):
            time.sleep(_ASIDE)

    def _take_within(self, seconds: float) -> bool:
        with self._door:
            deadline = time.monotonic() + seconds
            while not (taken := _try_to_lock(self._lock)) and time.monotonic() < deadline:
                time.sleep(_LOOK_SECONDS)
            return taken

    def release(self) -> None:
        """Also where it is not held."""
        fcntl.flock(self._lock, fcntl.LOCK_UN)

    def is_wanted(self) -> bool:
        return self._door.is_held()


class Places:
    """A number of places, each for one process."""

    def __init__(self, name: str, count: int) -> None:
        self._door = _Door(name)
        folder = Path(tempfile.gettempdir())
        self._locks = [(folder / f"{name}-{place}.lock").open("w") for place in range(count)]

    def take(self) -> None:
        with self._door:
            while not any(_try_to_lock(lock) for lock in self._locks):
                time.sleep(_LOOK_SECONDS)

    def release(self) -> None:
        """Also where none is held."""
        for lock in self._locks:
            fcntl.flock(lock, fcntl.LOCK_UN)


def _try_to_lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class Turns:
    """First one's turn comes, then the device is free: never the other way round, or two could wait
    for each other."""

    def __init__(self, places: int = PLACES) -> None:
        name = f"kernel-smith-gpu-{os.getuid()}-0"
        self._device = FairLock(name)
        self._turn = Places(f"{name}-turn", places)
        self._sharing = False
        self._inside = False
        self._lingering = False
        self._since = 0.0

    @contextlib.contextmanager
    def sharing(self) -> Iterator[None]:
        """In turn with others that share."""
        self._enter()
        self._sharing = True
        try:
            yield
        finally:
            self._sharing = False
            self._leave()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        self._device.take_alone()
        try:
            yield
        finally:
            self._device.release()

    def pause(self) -> None:
        """Between two uses of a shared device: it is the others' turn, if mine has been long."""
        short = self._inside and time.monotonic() - self._since < _TURN_SECONDS
        if self._sharing and (not short or self._device.is_wanted()):
            self._leave()
            self._enter()

    @contextlib.contextmanager
    def lingering(self) -> Iterator[None]:
        """While sharing: others have their turns although something of mine may still run. Nobody
        is alone with the device, though."""
        if not self._sharing:
            yield
            return
        self._lingering = True
        self._turn.release()
        try:
            yield
        finally:
            self._lingering = False
            self._leave()
            self._enter()

    @contextlib.contextmanager
    def stepping_out(self) -> Iterator[None]:
        """While sharing: others may even be alone, for as long as nothing of mine runs."""
        inside = self._inside
        self.step_out()
        try:
            yield
        finally:
            if inside:
                self.come_back()

    def step_out(self) -> None:
        if self._sharing:
            self._leave()

    def come_back(self) -> None:
        if self._sharing and not self._inside:
            self._enter()

    def _enter(self) -> None:
        if not self._lingering:
            self._turn.take()
        self._device.share()
        self._inside = True
        self._since = time.monotonic()

    def _leave(self) -> None:
        self._device.release()
        self._turn.release()
        self._inside = False
