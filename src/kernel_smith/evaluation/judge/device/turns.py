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
        if not self._sharing:
            yield
            return
        self._leave()
        try:
            yield
        finally:
            self._enter(fcntl.LOCK_SH)

    def _enter(self, how: int) -> None:
        fcntl.flock(self._door, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._room, how)
        finally:
            fcntl.flock(self._door, fcntl.LOCK_UN)

    def _leave(self) -> None:
        fcntl.flock(self._room, fcntl.LOCK_UN)
