"""Best of N, and one shot: programs written from the reference, none knowing of another.

What every method that learns from what it tried is compared with.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING

from kernel_smith.records import Event, RunConfig
from kernel_smith.search.bandit import Bandit
from kernel_smith.search.base import Ask, Exhausted

if TYPE_CHECKING:
    from kernel_smith.runs.state import RunState


class Independent:
    """A `Strategy`. It asks `most` times; None: until the budget is spent."""

    def __init__(self, config: RunConfig, most: int | None = None) -> None:
        self._bandit = Bandit(config.proposers)
        self._most = most

    @classmethod
    def one_shot(cls, config: RunConfig) -> Independent:
        return cls(config, most=1)

    def next(self, state: RunState, free: Sequence[str], rng: Random) -> Ask | None:
        if self._most is not None and self._bandit.asks >= self._most:
            raise Exhausted(f"{self._most} was all that was to be asked for")
        worker = self._bandit.choose(free)
        return Ask(worker=worker) if worker is not None else None

    def hear(self, event: Event, state: RunState) -> None:
        self._bandit.hear(event, state)
