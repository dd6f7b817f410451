"""A priority queue with an epsilon-net and a summariser, as in POLCA.

All programs that work wait in one queue. Who is next is decided by its score, as a share of the
range that was reached, and by how often it had its turn (UCB). The net keeps the queue apart: of
programs that differ in less than epsilon of their code only the best is in it, so that the queue
does not fill with one program in many wordings. Every few evaluations a model sums up what the run
has shown, and whoever is asked next is told that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from kernel_smith.programs.likeness import distance
from kernel_smith.records import Event, Remeasured, RunConfig, StepEvaluated, StepProposed
from kernel_smith.search.bandit import Bandit
from kernel_smith.search.base import Ask
from kernel_smith.search.context import context_of
from kernel_smith.search.scratchpad import Scratchpad

if TYPE_CHECKING:
    from kernel_smith.runs.state import RunState

_EPSILON = 0.02
_CURIOSITY = 0.5
_LARGEST = 64  # what is behind so many others never gets its turn


@dataclass
class _Waiting:
    score: float
    turns: int = 0


class Queue:
    """A `Strategy`."""

    def __init__(self, config: RunConfig) -> None:
        self._bandit = Bandit(config.proposers)
        self._scratchpad = Scratchpad(config)
        self._queue: dict[str, _Waiting] = {}

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(self._queue)

    def next(self, state: RunState, free: Sequence[str], rng: Random) -> Ask | None:
        worker = self._bandit.choose(free)
        if worker is None:
            return None
        note = self._scratchpad.ask(state, worker)
        if note is not None:
            return note
        parent = self._first(state)
        context = (*context_of(state, parent), *self._scratchpad.sections())
        return Ask(worker=worker, parent=parent, context=context)

    def _first(self, state: RunState) -> str | None:
        if not self._queue:
            return state.best.candidate.content_hash if state.best is not None else None
        logs = {name: math.log(each.score) for name, each in self._queue.items()}
        low, span = min(logs.values()), max(logs.values()) - min(logs.values())
        turns = sum(each.turns for each in self._queue.values())

        def priority(name: str) -> float:
            value = (logs[name] - low) / span if span > 0 else 0.0
            doubt = math.log(turns + 1) / (self._queue[name].turns + 1)
            return value + _CURIOSITY * math.sqrt(doubt)

        return max(self._queue, key=priority)

    def hear(self, event: Event, state: RunState) -> None:
        self._bandit.hear(event, state)
        self._scratchpad.hear(event)
        match event:
            case StepProposed():
                parent = state.steps[event.step].parent
                if parent in self._queue:
                    self._queue[parent].turns += 1
            case StepEvaluated():
                self._place(state.steps[event.step].proposal.candidate.content_hash, state)
            case Remeasured():
                self._place(event.candidate, state)

    def _place(self, name: str, state: RunState) -> None:
        """Put a program into the queue, unless a better one is within epsilon of it."""
        known = self._queue.pop(name, None)
        score = state.ranking.score(name)
        if score <= 0:
            return
        own = state.evaluated[name].candidate
        near = [
            other
            for other in self._queue
            if distance(own, state.evaluated[other].candidate) < _EPSILON
        ]
        if any(self._queue[other].score >= score for other in near):
            return
        turns = known.turns if known is not None else 0
        for other in near:  # it takes their place, and the turns that they had
            turns += self._queue.pop(other).turns
        self._queue[name] = _Waiting(score, turns)
        if len(self._queue) > _LARGEST:
            del self._queue[min(self._queue, key=lambda other: self._queue[other].score)]
