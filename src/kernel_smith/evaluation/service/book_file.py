"""The file of the job book: owned by one process, used by its threads one at a time."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.service.book_schema import connect, explained
from kernel_smith.store.faults import StoreError, refuse_no_file
from kernel_smith.store.locks import RunLock
from kernel_smith.store.transaction import transaction

Row = tuple[Any, ...]


class BookFile:
    """A connection with transactions, and threads that wait for a client's jobs to change."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.closed = False
        self._lock = _take_lock(path)
        self._mutex = threading.RLock()
        self._changed: dict[str, threading.Condition] = {}
        try:
            self._connection = connect(path)
        except BaseException:
            self._lock.release()
            raise

    def close(self) -> None:
        """Whoever waits stops waiting."""
        with self._mutex:
            if self.closed:
                return
            self.closed = True
            for condition in self._changed.values():
                condition.notify_all()
            self._connection.close()
            self._lock.release()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing. What is left without an exception survives whatever happens next."""
        with self._mutex, explained(self.path), transaction(self._connection):
            yield self._connection

    def rows(self, statement: str, *values: Any) -> list[Row]:
        with self._mutex, explained(self.path):
            return self._connection.execute(statement, values).fetchall()

    def row(self, statement: str, *values: Any) -> Row | None:
        found = self.rows(statement, *values)
        return found[0] if found else None

    def announce(self, client: str) -> None:
        """Wake those who wait for this client's jobs."""
        with self._mutex:
            if client in self._changed:
                self._changed[client].notify_all()

    def until(self, client: str, timeout: float, look: Callable[[], bool]) -> None:
        """Look now and after each change of the client's jobs, until it is true or time is over."""
        deadline = time.monotonic() + timeout
        with self._mutex:
            condition = self._changed.setdefault(client, threading.Condition(self._mutex))
            while not self.closed and not look():
                left = deadline - time.monotonic()
                if left <= 0:
                    return
                condition.wait(left)


def _take_lock(path: Path) -> RunLock:
    refuse_no_file(path)
    lock = path.with_name(f"{path.name}.lock")
    try:
        return RunLock.take(lock, path.name)
    except StoreError as error:
        hint = f"make {path.parent} a folder that can be written, or name another file"
        raise StoreError(error.what, hint=hint) from None
    except BadInput:
        with contextlib.suppress(OSError):
            owner = lock.read_text().strip()
            raise BadInput(
                f"{path}: another process (pid {owner}) owns this job book",
                hint=f"end it: kill {owner}; or name another file",
            ) from None
        raise
