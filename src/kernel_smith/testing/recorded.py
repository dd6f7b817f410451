"""The steps of real runs as a landscape: what would methods find if they asked otherwise?

    records = Records.of(step for step in read_steps([path]) if step.task.name == "matmul")
    records.judge(candidate)       # a speedup, or why there is none
    Replayer(records)              # a worker that answers with recorded changes

Nothing is compiled or timed. A program is a first program and the changes that were made to it. A
change can be made wherever those that it was built upon have been made, and none at the same place.
It gains what was certain of its gain when it was recorded, also beside changes that it was never
recorded with: that is assumed. So it matters which changes open the way to others, and which
programs are worth a change, but no two changes hurt one another that did not when they were made.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import NamedTuple

from kernel_smith.proposers.base import NothingToPropose
from kernel_smith.records import (
    Candidate,
    Evaluation,
    Note,
    Plan,
    Proposal,
    Question,
    Reason,
    Request,
    TrainingStep,
)
from kernel_smith.records.gains import certain_gain, timed_beside

_MADE = "\nMADE = [{names}]\n"
# It has no plans of its own, and says so in a form that can be read.
_PLANS = "\n".join(5 * ["PLAN: any change | gain 0 to 10 | innovation 50"])


class Change(NamedTuple):
    """A recorded step; the first of a lineage has the speedup of its program as its gain."""

    summary: str
    text: str
    outcome: float | Reason
    upon: tuple[int, ...] = ()
    """The numbers of those that it was built upon, the oldest first."""

    @property
    def places(self) -> frozenset[str]:
        """What it changes, whatever it changes it to: `unroll-loop: loop over i`, twice or so."""
        pieces = self.summary.split("; then ")
        return frozenset(re.sub(r" \([^()]*\)$", "", piece) for piece in pieces)


class Records:
    """The changes of one task, in the order in which they were made."""

    def __init__(self) -> None:
        self._changes: list[Change] = []
        self._lineages: dict[str, tuple[int, ...]] = {}

    @classmethod
    def of(cls, steps: Iterable[TrainingStep]) -> Records:
        records = cls()
        for step in steps:
            records.add(step)
        return records

    def add(self, step: TrainingStep) -> None:
        child, parent = step.child, step.parent
        upon = self._lineages.get(parent.candidate.content_hash) if parent else ()
        known = child.candidate.content_hash in self._lineages
        if known or upon is None:  # made of a program that failed, or of several
            return
        old = parent.evaluation if parent else None
        beside = timed_beside(child.evaluation, parent.candidate.content_hash if parent else None)
        gain = certain_gain(child.evaluation, old, beside)
        outcome = gain if gain > 0 else child.evaluation.reason or Reason.WRONG_VALUES
        if not isinstance(outcome, Reason):
            self._lineages[child.candidate.content_hash] = (*upon, len(self._changes))
        summary = step.summary if parent else ""
        self._changes.append(Change(summary, child.candidate.source, outcome, upon))

    @property
    def first(self) -> list[Candidate]:
        """The programs that the runs began with and that were right."""
        numbers = [self._lineages[each][0] for each in self._lineages]
        return [self.program([number]) for number in sorted(set(numbers))]

    def program(self, made: Sequence[int]) -> Candidate:
        """The text that the last change led to, with the names of all."""
        names = ", ".join(f"change_{number}" for number in made)
        return Candidate(source=self._changes[made[-1]].text + _MADE.format(names=names))

    def changes_of(self, candidate: Candidate) -> list[tuple[Change, Candidate]]:
        """What can be done to a program, and what it becomes."""
        made = _made(candidate)
        places = frozenset[str]().union(*(self._changes[number].places for number in made[1:]))
        return [
            (change, self.program([*made, number]))
            for number, change in enumerate(self._changes)
            if change.upon and set(change.upon) <= set(made) and not change.places & places
        ]

    def judge(self, candidate: Candidate) -> float | Reason:
        speed = 1.0
        for number in _made(candidate):
            outcome = self._changes[number].outcome
            if isinstance(outcome, Reason):
                return outcome
            speed *= outcome
        return speed

    @property
    def best_recorded(self) -> float:
        """The highest speed of a program that was recorded as it is."""
        lineages = map(list, self._lineages.values())
        speeds = [self.judge(self.program(made)) for made in lineages]
        return max(speed for speed in speeds if not isinstance(speed, Reason))


def _made(candidate: Candidate) -> list[int]:
    return [int(number) for number in re.findall(r"change_(\d+)", candidate.source)]


class Replayer:
    """A `Worker` named `model`, which answers at once, and says nothing twice."""

    name = "model"
    begins = True

    def __init__(self, records: Records) -> None:
        self._records = records
        self._told: set[str] = set()

    def start(self, request: Request) -> Future[Proposal | Note]:
        answer: Future[Proposal | Note] = Future()
        try:
            thinking = request.section(Question) is not None
            answer.set_result(Note(text=_PLANS) if thinking else self.propose(request))
        except NothingToPropose as nothing:
            answer.set_exception(nothing)
        return answer

    def propose(self, request: Request) -> Proposal:
        """A change of the parent that was not told yet; the planned one, if there is one."""
        rng = random.Random(request.seed)
        parent = request.parent.candidate if request.parent else rng.choice(self._records.first)
        new = [each for each in self._records.changes_of(parent) if _key(each[1]) not in self._told]
        if not new:
            raise NothingToPropose("all that was recorded has been told")
        plan = request.section(Plan)
        planned = [each for each in new if plan and each[0].summary.startswith(f"{plan.edit}:")]
        change, child = rng.choice(planned or new)
        self._told.add(_key(child))
        return Proposal(
            candidate=child,
            proposer=self.name,
            parents=(parent.content_hash,) if request.parent else (),
            summary=change.summary,
        )

    def learn(self, proposal: Proposal, evaluation: Evaluation) -> None:
        """On resuming a run: what was told before."""
        self._told.add(_key(proposal.candidate))

    def close(self) -> None:
        """Nothing is under way."""


def _key(candidate: Candidate) -> str:
    """The same for the same changes in another order."""
    return " ".join(map(str, sorted(_made(candidate))))
