"""What one evaluation says while it goes on, and what it leaves to be written down."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

Progress = Callable[[str], None]


class Journal:
    """`around` surrounds each step, by its name."""

    def __init__(
        self, progress: Progress, around: Callable[[str], AbstractContextManager[None]]
    ) -> None:
        self.say = progress
        self.notes: list[str] = []
        self.seconds: dict[str, float] = {}
        self._around = around

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        with self._around(name):
            self.say(name)
            begin = time.perf_counter()
            try:
                yield
            finally:
                self.seconds[name] = round(time.perf_counter() - begin, 6)
