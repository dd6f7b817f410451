"""Work that takes long: what it says of itself meanwhile, and how it is stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable


class LongWork:
    """Shared by whoever does the work and whoever waits for it. Safe to use from threads."""

    def __init__(self, words: str) -> None:
        self.words = words
        """What is being done, for those who wait."""
        self._lock = threading.Lock()
        self._end: Callable[[], None] | None = None
        self._stopped = False

    def on_stop(self, end: Callable[[], None]) -> None:
        """Have `end` called when nobody waits any more, at once if that is so already."""
        with self._lock:
            self._end = end
            stopped = self._stopped
        if stopped:
            end()

    def stop(self) -> None:
        """Nobody waits any more."""
        with self._lock:
            self._stopped = True
            end = self._end
        if end is not None:
            end()
