"""Rate limits of one model: requests and tokens per minute, shared by all who ask it.

Used on the client's event loop alone, so nothing here needs a lock against threads.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass


@dataclass
class Slot:
    """A request in the window. `tokens` is corrected once they are known."""

    at: float
    tokens: int


class Pace:
    """Lets requests pass in the order they came, as fast as the limits of the last minute allow."""

    def __init__(
        self, requests: int | None, tokens: int | None, window_seconds: float = 60.0
    ) -> None:
        self._requests = requests
        self._tokens = tokens
        self._window = window_seconds
        self._slots: deque[Slot] = deque()
        self._paused_until = 0.0
        self._turn = asyncio.Lock()

    async def enter(self, tokens: int) -> Slot:
        """Wait until a request of this size may be sent."""
        loop = asyncio.get_running_loop()
        async with self._turn:
            while (wait := self._wait(loop.time(), tokens)) > 0:
                await asyncio.sleep(wait)
            slot = Slot(loop.time(), tokens)
            self._slots.append(slot)
            return slot

    def pause(self, seconds: float) -> None:
        """The server asked everybody to wait."""
        until = asyncio.get_running_loop().time() + seconds
        self._paused_until = max(self._paused_until, until)

    def _wait(self, now: float, tokens: int) -> float:
        while self._slots and self._slots[0].at <= now - self._window:
            self._slots.popleft()
        if now < self._paused_until:
            return self._paused_until - now
        too_many = self._requests is not None and len(self._slots) >= self._requests
        used = 0 if self._tokens is None else sum(slot.tokens for slot in self._slots)
        # A request that is larger than the limit by itself passes when nothing else is counted.
        too_large = self._tokens is not None and bool(used) and used + tokens > self._tokens
        if too_many or too_large:
            return self._slots[0].at + self._window - now
        return 0.0
