"""Waiting for changes of jobs without a thread per connection.

The book tells of changes by calls that block. Here one thread per client makes them, and wakes the
coroutines that wait; a thousand open connections of a client cost one thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator

from kernel_smith.evaluation.service.book import JobBook

_LONGEST_BLOCK_SECONDS = 1.0  # how long a thread goes on when nobody listens any more


class Listener:
    """One coroutine that waits for changes of a client's jobs, or of one of them."""

    def __init__(self, job: str | None) -> None:
        self.job = job
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()

    def wake(self) -> None:
        """To be called from other threads."""
        with contextlib.suppress(RuntimeError):  # the loop has ended, and the coroutine with it
            self._loop.call_soon_threadsafe(self._event.set)

    async def changed(self, seconds: float) -> bool:
        """Something changed since the last call, or did so within these seconds."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True


class Following:
    def __init__(self, book: JobBook) -> None:
        self._book = book
        self._lock = threading.Lock()
        self._listeners: dict[str, set[Listener]] = {}
        self._followed: set[str] = set()
        self.closed = False

    @contextlib.contextmanager
    def listen(self, client: str, job: str | None = None) -> Iterator[Listener]:
        """Look at the book only after this began: then no change goes unnoticed."""
        listener = Listener(job)
        with self._lock:
            self._listeners.setdefault(client, set()).add(listener)
            if self.closed:
                listener.wake()
            elif client not in self._followed:
                self._followed.add(client)
                threading.Thread(target=self._follow, args=(client,), daemon=True).start()
        try:
            yield listener
        finally:
            with self._lock:
                self._listeners[client].discard(listener)

    def newest(self, client: str) -> int:
        """The number of the client's last change."""
        return self._book.last_change(client)

    def _follow(self, client: str) -> None:
        seen: int | None = None
        while self._wanted(client):
            try:
                seen = self._next_changes(client, seen)
            except Exception:
                # A book that fails tells the coroutines themselves, when they look into it.
                self._wake(client, None)
                time.sleep(_LONGEST_BLOCK_SECONDS)

    def _next_changes(self, client: str, seen: int | None) -> int:
        """Wait for changes after the last one that was seen; the number of the newest."""
        if seen is None:
            # Jobs may have changed since somebody began to listen: let all look once more.
            seen = self._book.last_change(client)
            self._wake(client, None)
            return seen
        changes = self._book.changes(client, seen, _LONGEST_BLOCK_SECONDS)
        if not changes:
            return seen
        self._wake(client, {job.id for _, job in changes})
        return changes[-1][0]

    def _wanted(self, client: str) -> bool:
        with self._lock:
            wanted = bool(self._listeners.get(client)) and not self.closed
            if not wanted:
                # Within the lock, so that whoever comes next starts another thread.
                self._followed.discard(client)
            return wanted

    def _wake(self, client: str, jobs: set[str] | None) -> None:
        with self._lock:
            for listener in self._listeners.get(client, ()):
                if jobs is None or listener.job is None or listener.job in jobs:
                    listener.wake()

    def close(self) -> None:
        """Wake everybody, for good."""
        with self._lock:
            self.closed = True
            for listeners in self._listeners.values():
                for listener in listeners:
                    listener.wake()
