"""What has changed in a store: one look serves all who watch."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from http import HTTPStatus

from kernel_smith.errors import UserError
from kernel_smith.evaluation.service.problems import Problem
from kernel_smith.viewer.book import RunBook

_FRESH_SECONDS = 0.4
_MOST_COSTS = 100  # runs whose events are read to know what they cost

Look = dict[str, tuple[int, str, bool]]
"""A run -> how many events it has, its state, and whether its cost is known."""


class Watching:
    def __init__(self, book: RunBook) -> None:
        self._book = book
        self._lock = threading.Lock()
        self._last: Look = {}
        self._at = float("-inf")
        self._listeners = 0
        self._reader: threading.Thread | None = None

    def look(self) -> Look:
        """Return how all runs are now, or were a moment ago."""
        with self._lock:
            if time.monotonic() - self._at > _FRESH_SECONDS:
                self._last = {
                    each.id: (each.events, each.state, self._book.has_cost(each.id))
                    for each in self._book.summaries()
                }
                self._at = time.monotonic()
            return self._last

    @contextlib.contextmanager
    def listener(self, most: int) -> Iterator[None]:
        """Count somebody who listens. Raises `Problem` where there are too many."""
        with self._lock:
            if self._listeners >= most:
                what = f"{most} pages watch already, the most there may be"
                raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, what, hint="close one of them")
            self._listeners += 1
        try:
            yield
        finally:
            with self._lock:
                self._listeners -= 1

    def read_costs(self) -> None:
        """Begin to read what runs cost, the newest first, unless that is under way. The list of
        runs does not wait for it."""
        with self._lock:
            if self._reader is None or not self._reader.is_alive():
                self._reader = threading.Thread(target=self._read_all, daemon=True)
                self._reader.start()

    def _read_all(self) -> None:
        with contextlib.suppress(UserError):  # a store that is damaged, or closed meanwhile
            for each in self._book.summaries()[:_MOST_COSTS]:
                if not self._book.has_cost(each.id):
                    self._book.read_cost(each.id)
