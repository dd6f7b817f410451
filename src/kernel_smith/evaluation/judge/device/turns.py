"""Who may use the GPU: many judges at once while they check, one alone while it times.

The locks are advisory, hold across all judges of this machine, and vanish with their process. A
judge that wants the device alone first closes the door to newcomers, or it would wait for ever.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO


class Turns:
    def __init__(self, device: int = 0) -> None:
        folder = Path(tempfile.gettempdir())
        name = f"kernel-smith-gpu-{os.getuid()}-{device}"
        self._door: IO[str] = (folder / f"{name}-door.lock").open("w")
        self._room: IO[str] = (folder / f"{name}.lock").open("w")
        self._sharing = False
        self._inside = False

    @contextlib.contextmanager
    def sharing(self) -> Iterator[None]:
        """Beside others that share."""
        self._enter(fcntl.LOCK_SH)
        self._sharing = True
        try:
            yield
        finally:
            self._sharing = False
            self._leave()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        self._enter(fcntl.LOCK_EX)
        try:
            yield
        finally:
            self._leave()

    @contextlib.contextmanager
    def stepping_out(self) -> Iterator[None]:
        """While sharing: let others have the device for as long as nothing runs on it."""
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
            self._enter(fcntl.LOCK_SH)

    def pause(self) -> None:
        """Between two uses of a shared device: whoever waits to have it alone goes first."""
        if self._sharing and (not self._inside or self._somebody_waits()):
            self._leave()
            self._enter(fcntl.LOCK_SH)

    def _somebody_waits(self) -> bool:
        """Is the door closed?"""
        try:
            fcntl.flock(self._door, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(self._door, fcntl.LOCK_UN)
        return False

    def _enter(self, how: int) -> None:
        fcntl.flock(self._door, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._room, how)
        finally:
            fcntl.flock(self._door, fcntl.LOCK_UN)
        self._inside = True

    def _leave(self) -> None:
        fcntl.flock(self._room, fcntl.LOCK_UN)
        self._inside = False
