"""Contrastive exemplars, as in CUDA-L1: fast against slow, compared before anything is written.

Programs are put into buckets by their score. Two buckets are drawn, faster ones more often, and a
program from each. The faster one is to be changed; the other is shown with its score, and the
question asks first for what makes the difference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING

from kernel_smith.records import Contrast, Event, Remeasured, RunConfig, StepEvaluated
from kernel_smith.search.bandit import Bandit
from kernel_smith.search.base import Ask
from kernel_smith.search.context import context_of

if TYPE_CHECKING:
    from kernel_smith.runs.state import RunState

_BUCKET = math.log(1.1)  # programs of one bucket differ by less than that
_TEMPERATURE = 0.5  # in units of the spread of the buckets' scores


class Contrastive:
    """A `Strategy`."""

    def __init__(self, config: RunConfig) -> None:
        self._bandit = Bandit(config.proposers)
        self._buckets: dict[int, dict[str, float]] = {}
        self._places: dict[str, int] = {}

    def next(self, state: RunState, free: Sequence[str], rng: Random) -> Ask | None:
        worker = self._bandit.choose(free)
        if worker is None:
            return None
        if state.best is None:
            return Ask(worker=worker, context=context_of(state, None))
        faster, *slower = self._draw(rng) or [state.best.candidate.content_hash]
        context = context_of(state, faster)
        if slower:
            shown = tuple(state.evaluated[name] for name in slower)
            context = (Contrast(programs=shown), *context)
        return Ask(worker=worker, parent=faster, context=context)

    def hear(self, event: Event, state: RunState) -> None:
        self._bandit.hear(event, state)
        match event:
            case StepEvaluated():
                self._place(state.steps[event.step].proposal.candidate.content_hash, state)
            case Remeasured():
                self._place(event.candidate, state)

    def _place(self, name: str, state: RunState) -> None:
        """Put a program into the bucket of its score; one without a score is in none."""
        if name in self._places:
            old = self._places.pop(name)
            del self._buckets[old][name]
            if not self._buckets[old]:
                del self._buckets[old]
        score = state.ranking.score(name)
        if score > 0:
            bucket = math.floor(math.log(score) / _BUCKET)
            self._places[name] = bucket
            self._buckets.setdefault(bucket, {})[name] = score

    def _draw(self, rng: Random) -> list[str]:
        """Return one program, or two of different buckets, the faster first."""
        left = sorted(self._buckets)
        drawn: list[int] = []
        spread = max(1, left[-1] - left[0]) if left else 1
        while left and len(drawn) < 2:
            weights = [math.exp((bucket - left[-1]) / spread / _TEMPERATURE) for bucket in left]
            drawn.append(rng.choices(left, weights)[0])
            left.remove(drawn[-1])
        return [rng.choice(list(self._buckets[bucket])) for bucket in sorted(drawn, reverse=True)]
