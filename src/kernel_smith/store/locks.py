"""One writer per run, one creator per store: advisory locks that die with their process."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from kernel_smith.errors import BadInput
from kernel_smith.store.faults import StoreError

# Somebody who only looks whether a run is locked holds its lock for an instant.
_PATIENCE = 0.5


class RunLock:
    """Held until `release`, the end of the `with` block, or the end of the process."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, path: Path, run: str) -> RunLock:
        """Lock a run. A second writer gets a `BadInput` that names the first."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            descriptor = _open(path)
            if _try_lock(descriptor) and _is_current(path, descriptor):
                os.ftruncate(descriptor, 0)
                os.write(descriptor, str(os.getpid()).encode())
                return cls(path, descriptor)
            writer = os.pread(descriptor, 32, 0).decode()
            os.close(descriptor)
            if time.monotonic() > deadline:
                raise BadInput(
                    f"run {run} is being written by another process (pid {writer})",
                    hint=f"wait for it, or end it: kill {writer}",
                )
            time.sleep(0.02)

    def release(self) -> None:
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                self._path.unlink()
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold a lock for a short while; whoever else wants it waits."""
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Tell whether a living process holds this lock."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        return not _try_lock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StoreError(
            f"{path}: cannot be written ({error.strerror})",
            hint=f"make {path.parent.parent} writable, or set KERNEL_SMITH_STORE to another file",
        ) from None


def _try_lock(descriptor: int, how: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_current(path: Path, descriptor: int) -> bool:
    """False where the file was removed, by a writer that ended, between opening and locking."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False
