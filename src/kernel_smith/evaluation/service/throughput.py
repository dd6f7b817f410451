"""How fast jobs end, and so how long it takes until there is room for more."""

from __future__ import annotations

import time
from collections import deque

SHORTEST, LONGEST = 1.0, 60.0  # seconds that somebody may be asked to wait

_UNKNOWN = 10.0  # seconds, before anything has ended
_REMEMBERED = 64  # jobs


class Throughput:
    def __init__(self) -> None:
        self._ends: deque[float] = deque(maxlen=_REMEMBERED)

    def note_end(self) -> None:
        self._ends.append(time.monotonic())

    def seconds_for(self, jobs: int) -> float:
        """How long this many jobs will take to end, within what is reasonable to ask for."""
        if not self._ends:
            return _UNKNOWN
        per_job = (time.monotonic() - self._ends[0]) / len(self._ends)
        return min(max(SHORTEST, jobs * per_job), LONGEST)
