"""Islands with MAP-Elites: the method of the Kernel-Smith paper, and of OpenEvolve before it.

A bandit chooses who is asked. Islands have their turns; each keeps the best programs of every
kind. A parent is drawn from the island whose turn it is, or is the best of the run, and now and
then the best of each island visits the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING

from kernel_smith.records import (
    Elite,
    Event,
    Label,
    Migrated,
    Remeasured,
    RunConfig,
    StepEvaluated,
    StepProposed,
)
from kernel_smith.search.bandit import Bandit
from kernel_smith.search.base import Ask
from kernel_smith.search.context import context_of
from kernel_smith.search.islands.archive import Archive, ArchiveConfig
from kernel_smith.search.scratchpad import Scratchpad

if TYPE_CHECKING:
    from kernel_smith.runs.state import RunState, Step

_ISLAND = "island"
# Of recorded steps from the best 15.3% were new bests, of those from others 4.2%. On made-up
# landscapes it makes no difference that shows (docs/evolution.md).
_FROM_BEST = 0.4
_FROM_FRONT = 0.25  # as often again, one that is the best on some workload


class Islands:
    """A `Strategy`."""

    def __init__(self, config: RunConfig, from_best: float = _FROM_BEST) -> None:
        self.archive = Archive(ArchiveConfig.of(config))
        self.bandit = Bandit(config.proposers)
        self._scratchpad = Scratchpad(config) if from_best else None
        self._islands = config.islands
        self._migrate_every = config.migrate_every
        self._exemplars = config.exemplars
        self._from_best = from_best

    @classmethod
    def of_the_paper(cls, config: RunConfig) -> Islands:
        """Every parent comes from the island whose turn it is."""
        return cls(config, from_best=0.0)

    def next(self, state: RunState, free: Sequence[str], rng: Random) -> Ask | None:
        worker = self.bandit.choose(free)
        if worker is None:
            return None
        island = self.bandit.asks % self._islands
        label: Label = {_ISLAND: island}
        if state.best is None:
            return Ask(worker=worker, context=context_of(state, None), label=label)
        note = self._scratchpad.ask(state, worker) if self._scratchpad else None
        if note is not None:
            return note
        parent = self._parent(state, island, rng)
        shown = self.archive.exemplars(parent, self._exemplars, rng, island)
        name = parent.candidate.content_hash
        context = context_of(state, name, shown)
        if self._scratchpad is not None:
            context += self._scratchpad.sections()
        return Ask(worker=worker, parent=name, context=context, label=label)

    def _parent(self, state: RunState, island: int, rng: Random) -> Elite:
        """The best, one that is the best on some workload, or one of the island."""
        drawn = rng.random()
        if drawn < self._from_best and state.best is not None:
            return state.best
        ahead = list(state.front.specialists().values())
        if drawn < self._from_best * (1 + _FROM_FRONT) and ahead:
            return state.evaluated[rng.choice(ahead)]
        return self.archive.sample_parent(island, rng)

    def hear(self, event: Event, state: RunState) -> None:
        self.bandit.hear(event, state)
        if self._scratchpad is not None:
            self._scratchpad.hear(event)
        match event:
            case StepProposed():
                parent = state.steps[event.step].parent
                if parent is not None:
                    self.archive.note_child(parent)
            case StepEvaluated():
                self._evaluated(state.steps[event.step], state)
            case Remeasured():
                self._remeasured(event, state)
            case Migrated():
                self.archive.add(state.evaluated[event.candidate], event.target)

    def _evaluated(self, step: Step, state: RunState) -> None:
        elite = state.evaluated[step.proposal.candidate.content_hash]
        if elite.evaluation.ok and not state.ranking.is_twin(elite.evaluation):
            self.archive.add(elite, self._home(step))
        if self._islands > 1 and state.funnel["evaluated"] % self._migrate_every == 0:
            for plan in self.archive.migrants():
                self.archive.add(state.evaluated[plan.candidate], plan.target)

    def _home(self, step: Step) -> int:
        """Programs that nobody was asked for, such as first ones, go to all islands in turn."""
        return int(step.label.get(_ISLAND, step.number % self._islands))

    def _remeasured(self, event: Remeasured, state: RunState) -> None:
        self.archive.update(event.candidate, event.evaluation)
        best = state.ranking.best
        if best is not None and best not in self.archive:
            self.archive.add(state.evaluated[best], 0)  # it was turned away when others led
