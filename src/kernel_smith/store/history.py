"""A run's history as a fold over its events: light facts about each step, without programs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from kernel_smith.errors import BadInput
from kernel_smith.records import (
    BaselineSpeedup,
    Evaluation,
    Event,
    Interval,
    Label,
    Reason,
    Remeasured,
    RunStarted,
    Stage,
    StepDropped,
    StepEvaluated,
    StepProposed,
    score,
    shown_faster,
)
from kernel_smith.store.facts import RunFacts


@dataclass
class StepFacts:
    """One step; `stage` is None while it is in flight, and `speedup` is of the last measuring."""

    step: int
    label: Label
    candidate: str
    proposer: str
    parents: tuple[str, ...]
    summary: str
    at: datetime
    stage: Stage | None = None
    reason: Reason | None = None
    speedup: Interval | None = None
    shown: tuple[BaselineSpeedup, ...] = ()
    """What it showed at full length, after it had been chosen."""
    beside: dict[str, Interval] = field(default_factory=dict)
    """How much faster than other candidates it was in the same rounds, by the last measuring."""
    confirmed: bool = False
    """Was it faster beyond doubt than all of those baselines?"""

    def measured(self, evaluation: Evaluation) -> None:
        timed = score(evaluation) > 0 and evaluation.timing is not None
        self.stage, self.reason = evaluation.stage, evaluation.reason
        self.speedup = evaluation.timing.speedup if timed and evaluation.timing else None
        other = evaluation.beside
        if other is not None and other.gain is not None:
            self.beside[other.candidate_hash] = other.gain

    def remeasured(self, event: Remeasured) -> None:
        """What was too noisy says nothing new."""
        evaluation = event.evaluation
        if evaluation.stage is not Stage.UNSTABLE:
            self.measured(evaluation)
        timing = evaluation.timing if event.confirming else None
        self.shown = () if timing is None else timing.speedups
        self.confirmed = event.confirming and shown_faster(evaluation)

    @property
    def score(self) -> float:
        return self.speedup.low if self.speedup else 0.0


@dataclass
class History(RunFacts):
    """What happened in a run. `History.of(event for _, event in store.events(run))`"""

    steps: dict[int, StepFacts] = field(default_factory=dict)
    by_candidate: dict[str, StepFacts] = field(default_factory=dict)

    @classmethod
    def of(cls, events: Iterable[Event]) -> History:
        """Fold all events of a run; the first is its beginning."""
        later = iter(events)
        first = next(later, None)
        if not isinstance(first, RunStarted):
            raise BadInput("the run has no beginning", hint="see `kernel-smith runs list`")
        history = cls.begin(first)
        for event in later:
            history.add(event)
        return history

    @property
    def best(self) -> StepFacts | None:
        best = self.ranking.best
        return None if best is None else self.by_candidate[best]

    def was_best(self, facts: StepFacts) -> bool:
        """Tell whether a step's program took the lead and held it; one that had luck did not."""
        return facts.candidate in self.ranking.held

    def add(self, event: Event) -> None:
        """Take one event in."""
        self.note(event)
        match event:
            case StepProposed():
                self._add_step(event)
            case StepEvaluated():
                self.steps[event.step].measured(event.evaluation)
            case StepDropped():
                self.steps.pop(event.step, None)
            case Remeasured():
                facts = self.by_candidate.get(event.candidate)
                if facts is not None:
                    facts.remeasured(event)

    def lineage(self, facts: StepFacts) -> list[StepFacts]:
        """From the start of the run to this step, along the parent that was changed each time."""
        path = [facts]
        seen = {facts.step}
        while path[-1].parents:
            parent = self.by_candidate.get(path[-1].parents[0])
            if parent is None or parent.step in seen:
                break
            seen.add(parent.step)
            path.append(parent)
        return path[::-1]

    def _add_step(self, event: StepProposed) -> None:
        proposal = event.proposal
        facts = StepFacts(
            step=event.step,
            label=event.label,
            candidate=proposal.candidate.content_hash,
            proposer=proposal.proposer,
            parents=proposal.parents,
            summary=proposal.summary,
            at=event.at,
        )
        self.steps[event.step] = facts
        self.by_candidate.setdefault(facts.candidate, facts)
