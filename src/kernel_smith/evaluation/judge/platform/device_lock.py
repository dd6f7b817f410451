"""Who may use the GPU: judges take short turns while they check, one has it alone while it times.

A GPU serves several processes by slices of milliseconds, so that each waits for all others at every
step; taking turns, each works at full speed. Whoever waits long for a candidate's process steps
aside meanwhile. The locks are advisory, hold across all judges of this machine, and vanish with
their process.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_TURN_SECONDS = 0.02
AT_THE_DOOR = 0.2  # who wants to be alone keeps others out for so long, then steps aside
_ASIDE = 0.05
_LOOK_SECONDS = 0.001


class FairLock:
    """A lock between processes. Whoever waits holds the door, so that nobody can overtake."""

    def __init__(self, name: str) -> None:
        folder = Path(tempfile.gettempdir())
        self._door = (folder / f"{name}-door.lock").open("w")
        self._lock = (folder / f"{name}.lock").open("w")

    def acquire(self, *, shared: bool = False) -> None:
        fcntl.flock(self._door, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        finally:
            fcntl.flock(self._door, fcntl.LOCK_UN)

    def acquire_among_sharers(self) -> None:
        """Alone, though somebody may keep it for long: others who share get in meanwhile."""
        while not self._acquire_within(AT_THE_DOOR):
            time.sleep(_ASIDE)

    def _acquire_within(self, seconds: float) -> bool:
        fcntl.flock(self._door, fcntl.LOCK_EX)
        deadline = time.monotonic() + seconds
        try:
            while not (taken := self._try_to_take()) and time.monotonic() < deadline:
                time.sleep(_LOOK_SECONDS)
            return taken
        finally:
            fcntl.flock(self._door, fcntl.LOCK_UN)

    def _try_to_take(self) -> bool:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Also where it is not held."""
        fcntl.flock(self._lock, fcntl.LOCK_UN)

    def close(self) -> None:
        """Release it, and have no more to do with it."""
        self._lock.close()
        self._door.close()

    def is_held(self) -> bool:
        """By somebody, alone or shared? Not to be asked by who holds it."""
        free = self._try_to_take()
        if free:
            self.release()
        return not free

    def is_wanted(self) -> bool:
        """Does somebody wait?"""
        try:
            fcntl.flock(self._door, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(self._door, fcntl.LOCK_UN)
        return False


def lock_of_device(device: int = 0) -> FairLock:
    """Held alone by who times, and shared by who uses the device otherwise."""
    return FairLock(f"kernel-smith-gpu-{os.getuid()}-{device}")


def _lock_of_others(device: int) -> FairLock:
    """Held shared by whoever is no judge and uses the device, for seconds at a time. Who wants to
    be alone waits here for them, in turn with those that come later, and keeps no judge out."""
    return FairLock(f"kernel-smith-gpu-{os.getuid()}-{device}-others")


@contextlib.contextmanager
def using_device(device: int = 0) -> Iterator[None]:
    """Keep others from being alone with the device: something else than a judge works on it."""
    with (
        contextlib.closing(_lock_of_others(device)) as among_others,
        contextlib.closing(lock_of_device(device)) as lock,
    ):
        among_others.acquire(shared=True)
        lock.acquire(shared=True)
        yield


class Need:
    """Judges that found no memory on the device say so, and the others let go of what can wait."""

    def __init__(self, device: int = 0) -> None:
        self._lock = FairLock(f"kernel-smith-gpu-{os.getuid()}-{device}-memory")

    @contextlib.contextmanager
    def felt(self) -> Iterator[None]:
        self._lock.acquire(shared=True)
        try:
            yield
        finally:
            self._lock.release()

    def is_felt(self) -> bool:
        """By another judge."""
        return self._lock.is_held()


class DeviceLock:
    """First one's turn comes, then the device is free: never the other way round, or two could wait
    for each other."""

    def __init__(self, device: int = 0) -> None:
        self._device = lock_of_device(device)
        self._others = _lock_of_others(device)
        self._turn = FairLock(f"kernel-smith-gpu-{os.getuid()}-{device}-turn")
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

    @property
    def is_shared(self) -> bool:
        """Say whether this judge uses the device in turn with others."""
        return self._sharing

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        self._others.acquire()
        try:
            self._device.acquire_among_sharers()
            yield
        finally:
            self._device.release()
            self._others.release()

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
            self._turn.acquire()
        self._device.acquire(shared=True)
        self._inside = True
        self._since = time.monotonic()

    def _leave(self) -> None:
        self._device.release()
        self._turn.release()
        self._inside = False
