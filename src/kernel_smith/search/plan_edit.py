"""Macro plan, micro edits, as in QiMeng's MTMC (macro thinking, micro coding).

What is to be done is decided apart from how it is written: a policy picks one named optimization
after another from a fixed list, the mutator's edits, and whoever writes is told that one alone. The
policy learns from the run which of them pay (UCB by what is certain of their gains). Steps build on
one another: the next one starts from what the last one made, if that works and is hardly slower;
after some steps, or when several in a row have failed, a new sequence starts from the best.

The mutator carries a step out where it finds a place for the edit, a model in any case; other
workers are asked as usual. Where the chooser takes part, it is the policy: what it would choose is
the plan, and what it has no opinion about is planned as without it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from kernel_smith.errors import BadInput
from kernel_smith.records import Declined, Event, Plan, RunConfig, StepDropped, StepEvaluated
from kernel_smith.search.bandit import Bandit
from kernel_smith.search.base import Ask
from kernel_smith.search.context import context_of
from kernel_smith.search.planner import CHOOSER, Planner

if TYPE_CHECKING:
    from kernel_smith.runs.state import RunState

PLAN_EDIT = "plan-edit"
_PLANNED = ("model", "mutator")  # who can do as they are told
_EDIT = "edit"
_LONGEST = 6  # steps of a sequence
_PATIENCE = 3  # failures in a row
_HARDLY_SLOWER = 0.97
_CURIOSITY = 0.5
_USUAL = math.log(1.05)  # a gain that one is content with
_REMEMBERED = 12


class PlanEdit:
    """A `Strategy`. Its settings, `plan-edit`, have a sentence for each named edit (`edits`)."""

    def __init__(self, config: RunConfig) -> None:
        self._planner = Planner(config, _PLANNED)
        self._bandit = Bandit(
            {
                name: weight
                for name, weight in config.proposers.items()
                if not (self._planner.takes_part and name == CHOOSER)
            }
        )
        self._edits = _declared_edits(config)
        self._steps: dict[str, list[int]] = defaultdict(list)
        self._tried: dict[str, int] = defaultdict(int)
        self._vain: set[tuple[str, str]] = set()
        self._at: str | None = None
        self._length = self._failed = 0

    def next(self, state: RunState, free: Sequence[str], rng: Random) -> Ask | None:
        if state.best is None:
            worker = self._bandit.choose(free)
            return Ask(worker=worker, context=context_of(state, None)) if worker else None
        parent = self._at or state.best.candidate.content_hash
        question = self._planner.ask(parent, free)
        if question is not None:
            return question
        if self._planner.is_thinking(parent):
            free = [name for name in free if name not in _PLANNED]
        worker = self._bandit.choose(free)
        return None if worker is None else self._told(worker, parent, state, rng)

    def _told(self, worker: str, parent: str, state: RunState, rng: Random) -> Ask:
        """Ask for what the chooser has planned, or else for the edit that promises most."""
        context = context_of(state, parent)
        planned = self._planner.take(parent) if worker in _PLANNED else None
        if planned is not None:
            sentence = f"{self._edits.get(planned.edit, '')} Here: {planned.place}".strip()
            plan = Plan(text=f"{planned.edit}: {sentence}", edit=planned.edit)
            label = planned.label | {_EDIT: planned.edit}
            return Ask(worker=worker, parent=parent, context=(*context, plan), label=label)
        edit = self._choose(parent, worker, state, rng) if worker in _PLANNED else None
        if edit is None:
            return Ask(worker=worker, parent=parent, context=context)
        plan = Plan(text=f"{edit}: {self._edits[edit]}", edit=edit)
        return Ask(worker=worker, parent=parent, context=(*context, plan), label={_EDIT: edit})

    def _choose(self, parent: str, worker: str, state: RunState, rng: Random) -> str | None:
        """Return the edit that promises most; None if there is none that was not in vain here."""
        open_to = [edit for edit in self._edits if (worker + edit, parent) not in self._vain]
        total = 1 + sum(self._tried.values())
        rng.shuffle(open_to)  # of equals any

        def promise(edit: str) -> float:
            steps = [state.steps[number] for number in self._steps[edit][-_REMEMBERED:]]
            gains = [min(math.log(max(step.worth, 1.0)), _USUAL) / _USUAL for step in steps]
            value = sum(gains) / (len(gains) + 1)
            return value + _CURIOSITY * math.sqrt(math.log(total) / (1 + self._tried[edit]))

        return max(open_to, key=promise, default=None)

    def hear(self, event: Event, state: RunState) -> None:
        self._bandit.hear(event, state)
        self._planner.hear(event)
        match event:
            case Declined():
                self._note_vain(event.worker, event.parent, event.label.get(_EDIT))
            case StepDropped():
                self._note_vain(event.proposer, event.parent, event.label.get(_EDIT))
            case StepEvaluated():
                self._evaluated(event.step, state)

    def _note_vain(self, worker: str, parent: str | None, edit: object) -> None:
        if isinstance(edit, str) and parent is not None:
            self._vain.add((worker + edit, parent))

    def _evaluated(self, number: int, state: RunState) -> None:
        step = state.steps[number]
        edit = step.label.get(_EDIT)
        if not isinstance(edit, str):
            return
        self._tried[edit] += 1
        self._steps[edit].append(number)
        child = step.proposal.candidate.content_hash
        before, after = state.ranking.score(step.parent), state.ranking.score(child)
        if after > 0 and after >= _HARDLY_SLOWER * before:
            self._at, self._failed = child, 0
            self._length += 1
        else:
            self._failed += 1
        if self._length >= _LONGEST or self._failed >= _PATIENCE:
            self._at, self._length, self._failed = None, 0, 0


def _declared_edits(config: RunConfig) -> dict[str, str]:
    """Read a sentence for each named edit from the settings, which may come from a file."""
    edits: Any = config.settings.get(PLAN_EDIT, {}).get("edits", {})
    if not isinstance(edits, dict) or not all(isinstance(each, str) for each in edits.values()):
        raise BadInput(
            f"settings.{PLAN_EDIT}.edits is {edits!r}, expected a sentence for each named edit",
            hint='such as: tile-loop = "Go through a loop in tiles."',
        )
    return edits
