"""A run's history as a fold over its events: light facts about each step, without programs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from kernel_smith.records import (
    BaselineSpeedup,
    Evaluation,
    Event,
    Interval,
    Label,
    Noted,
    Reason,
    Remeasured,
    RunConfig,
    RunEnded,
    RunResumed,
    RunStarted,
    Stage,
    StepDropped,
    StepEvaluated,
    StepProposed,
    Task,
    Usage,
    score,
    shown_faster,
)
from kernel_smith.store.ranking import Ranking

# The gates in order, each with the stages that did not pass it.
_STOPPED = (
    ("compiled", {Stage.SCREENED_OUT, Stage.COMPILE_ERROR}),
    ("correct", {Stage.LOAD_ERROR, Stage.RUNTIME_ERROR, Stage.TIMEOUT, Stage.INCORRECT}),
    ("honest", {Stage.CHEATING}),
)


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
    was_best: bool = False
    shown: tuple[BaselineSpeedup, ...] = ()
    """What it showed at full length, after it had been chosen."""
    confirmed: bool = False
    """Was it faster beyond doubt than all of those baselines?"""

    def measured(self, evaluation: Evaluation) -> None:
        timed = score(evaluation) > 0 and evaluation.timing is not None
        self.stage, self.reason = evaluation.stage, evaluation.reason
        self.speedup = evaluation.timing.speedup if timed and evaluation.timing else None

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
class History:
    """What happened in a run. `History.of(event for _, event in store.events(run))`"""

    run: str = ""
    task: Task | None = None
    config: RunConfig | None = None
    started: datetime | None = None
    ended: str | None = None
    unconfirmed: str = ""
    dropped: int = 0
    remeasured: int = 0
    resumed: int = 0
    usage: Usage = field(default_factory=Usage)
    steps: dict[int, StepFacts] = field(default_factory=dict)
    by_candidate: dict[str, StepFacts] = field(default_factory=dict)
    ranking: Ranking = field(default_factory=Ranking)
    curve: list[float] = field(default_factory=list)
    """The best speedup after each evaluation, and what was measured again before the next."""

    @classmethod
    def of(cls, events: Iterable[Event]) -> History:
        history = cls()
        for event in events:
            history.add(event)
        return history

    @property
    def best(self) -> StepFacts | None:
        best = self.ranking.best
        return None if best is None else self.by_candidate[best]

    def add(self, event: Event) -> None:
        self.ranking.hear(event)
        if isinstance(event, RunStarted):
            self.run, self.task, self.config = event.run, event.task, event.config
            self.started = event.at
        elif isinstance(event, StepProposed):
            self._proposed(event)
        elif isinstance(event, StepEvaluated):
            self._evaluated(event)
        elif isinstance(event, StepDropped):
            self.dropped += 1
            self.steps.pop(event.step, None)
            if event.conversation is not None:
                self.usage += event.conversation.usage
        elif isinstance(event, Noted):
            if event.note.conversation is not None:
                self.usage += event.note.conversation.usage
        elif isinstance(event, Remeasured):
            self._remeasured(event)
        elif isinstance(event, RunResumed):
            self.resumed += 1
            self.ended, self.unconfirmed = None, ""
        elif isinstance(event, RunEnded):
            self.ended, self.unconfirmed = event.why, event.unconfirmed

    def funnel(self) -> dict[str, int]:
        """How many steps passed each gate. `faster` is certain: the whole interval is above 1."""
        evaluated = [facts for facts in self.steps.values() if facts.stage is not None]
        counts = {"proposed": len(self.steps), "evaluated": len(evaluated)}
        left = evaluated
        for gate, stopped in _STOPPED:
            left = [facts for facts in left if facts.stage not in stopped]
            counts[gate] = len(left)
        counts["faster"] = sum(facts.score > 1 for facts in left)
        return counts

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

    def _proposed(self, event: StepProposed) -> None:
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
        if proposal.conversation is not None:
            self.usage += proposal.conversation.usage

    def _evaluated(self, event: StepEvaluated) -> None:
        facts = self.steps[event.step]
        facts.measured(event.evaluation)
        facts.was_best = facts.candidate in self.ranking.held
        self.curve.append(self._curve_value())

    def _remeasured(self, event: Remeasured) -> None:
        self.remeasured += not event.confirming
        facts = self.by_candidate.get(event.candidate)
        if facts is not None:
            facts.remeasured(event)
        if self.best is not None and self.best.candidate in self.ranking.held:
            self.best.was_best = True
        if self.curve:
            self.curve[-1] = self._curve_value()

    def _curve_value(self) -> float:
        """A contender shows in the curve once it was measured again."""
        if self.ranking.best in self.ranking.challenges:
            return self.curve[-1] if self.curve else 0.0
        return self.best.speedup.value if self.best and self.best.speedup else 0.0
