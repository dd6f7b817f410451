"""Greedy refinement: the best program is changed, again and again.

What evolutionary methods are compared with. A bandit chooses who is asked; the parent is always the
best so far, shown with what failed from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING

from kernel_smith.records import Event, RunConfig
from kernel_smith.search.bandit import Bandit
from kernel_smith.search.base import Ask
from kernel_smith.search.context import context_of

if TYPE_CHECKING:
    from kernel_smith.runs.state import RunState


class Greedy:
    """A `Strategy`."""

    def __init__(self, config: RunConfig) -> None:
        self._bandit = Bandit(config.proposers)

    def next(self, state: RunState, free: Sequence[str], rng: Random) -> Ask | None:
        worker = self._bandit.choose(free)
        if worker is None:
            return None
        parent = state.best.candidate.content_hash if state.best is not None else None
        return Ask(worker=worker, parent=parent, context=context_of(state, parent))

    def hear(self, event: Event, state: RunState) -> None:
        self._bandit.hear(event, state)
