"""The facts of a run: the one fold that all who read its events share.

`RunState`, which the loop works with, adds programs and evaluations to it, and `History`, which
`runs` shows, the facts of each step. Neither counts anything that is counted here. The columns that
`runs list` reads are the same facts in SQL (`summary.py`); a test compares all of them after every
event.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Self

from kernel_smith.records import (
    Conversation,
    Counted,
    Declined,
    Evaluation,
    Event,
    MeasuredInVain,
    Noted,
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
    Unfit,
    Usage,
    score,
)
from kernel_smith.store.ranking import Ranking

OUTSIDE = "outside"
"""The proposer of what somebody tells a run."""

GATES = ("proposed", "evaluated", "compiled", "correct", "honest", "faster")
# The stages at which programs did not pass a gate, nor those that follow it.
_STOPPED_AT = {
    "compiled": {Stage.SCREENED_OUT, Stage.COMPILE_ERROR},
    "correct": {Stage.LOAD_ERROR, Stage.RUNTIME_ERROR, Stage.TIMEOUT, Stage.INCORRECT},
    "honest": {Stage.CHEATING},
}


class Lead(NamedTuple):
    """A point of the curve: what was certain of the best, from this step on."""

    step: int
    evaluations: int
    """How many there had been."""
    score: float


@dataclass
class RunFacts:
    """What can be said of a run without its programs."""

    run: str
    task: Task
    config: RunConfig
    """With the budget of the last resume."""
    started: datetime
    ended: str | None = None
    unconfirmed: str = ""
    """Why the best was not measured at full length when the run ended."""
    unfit: Unfit | None = None
    """What kept the task from being judged at all."""
    ranking: Ranking = field(default_factory=Ranking)
    funnel: Counter[str] = field(default_factory=Counter)
    """How many steps passed each gate by their last measuring. `faster` is certain."""
    by_proposer: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    declined: Counter[str] = field(default_factory=Counter)
    """How often a worker had nothing to propose."""
    last_drop: dict[str, str] = field(default_factory=dict)
    """Why the last answer of a proposer was of no use."""
    usage: Usage = field(default_factory=Usage)
    rounds: int = 0
    """Answers of the workers that the configuration names, dropped ones and notes included."""
    remeasured: int = 0
    resumed: int = 0
    device_seconds: float = 0.0
    seconds: float = 0.0
    curve: list[Lead] = field(default_factory=list)
    since_best: int = 0
    last_step: int = -1
    _latest: datetime = field(init=False)
    _proposed: dict[int, tuple[str, str]] = field(default_factory=dict)
    """The proposer and the program of each step."""
    _passed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The gates that a program passed by its last measuring."""

    def __post_init__(self) -> None:
        self._latest = self.started

    @classmethod
    def begin(cls, event: RunStarted) -> Self:
        return cls(event.run, event.task, event.config, event.at)

    @property
    def new_bests(self) -> int:
        """How many programs took the lead and held it when they were measured again."""
        return len(self.ranking.held)

    def gave_nothing(self, proposer: str) -> bool:
        """Was it asked, and not one of its answers a new program?"""
        return self.dropped[proposer] > 0 and self.by_proposer[proposer] == 0

    def note(self, event: Event) -> None:
        """Take one event in."""
        bests = self.new_bests
        self._count_time(event)
        self.ranking.hear(event)
        match event:
            case StepProposed():
                self._note_proposed(event)
            case StepEvaluated():
                self._note_evaluated(event)
            case StepDropped():
                self._note_dropped(event)
            case Noted():
                self.rounds += event.worker in self.config.proposers
                self._pay(event.note.conversation)
            case Remeasured():
                self._note_remeasured(event)
            case MeasuredInVain() | Counted():
                self.device_seconds += event.seconds
            case Declined():
                self.declined[event.worker] += 1
                self.device_seconds += event.device_seconds
            case RunEnded():
                self.ended, self.unconfirmed = event.why, event.unconfirmed
                self.unfit = event.unfit
            case RunResumed():
                self._note_resumed(event)
        if self.new_bests > bests:
            self.since_best = 0
        if isinstance(event, StepEvaluated | Remeasured):
            self._note_lead()

    def _note_proposed(self, event: StepProposed) -> None:
        proposal = event.proposal
        self._proposed[event.step] = proposal.proposer, proposal.candidate.content_hash
        self.last_step = max(self.last_step, event.step)
        self.by_proposer[proposal.proposer] += 1
        self.rounds += proposal.proposer in self.config.proposers
        self.funnel["proposed"] += 1
        self.device_seconds += proposal.device_seconds
        self._pay(proposal.conversation)

    def _note_evaluated(self, event: StepEvaluated) -> None:
        evaluation = event.evaluation
        self.device_seconds += event.seconds
        self.since_best += 1
        self.funnel["evaluated"] += 1
        self.funnel["twins"] += evaluation.ok and self.ranking.is_twin(evaluation)
        self._judge(evaluation.candidate_hash, evaluation)

    def _note_dropped(self, event: StepDropped) -> None:
        self.last_step = max(self.last_step, event.step)
        self.funnel["dropped"] += 1
        self.dropped[event.proposer] += 1
        self.last_drop[event.proposer] = event.why
        self.rounds += event.proposer in self.config.proposers
        self._pay(event.conversation)
        if event.step in self._proposed:  # as earlier versions wrote it down
            proposer, _ = self._proposed.pop(event.step)
            self.by_proposer[proposer] -= 1
            self.rounds -= proposer in self.config.proposers
            self.funnel["proposed"] -= 1

    def _note_remeasured(self, event: Remeasured) -> None:
        self.remeasured += not event.confirming
        self.device_seconds += event.seconds
        if event.evaluation.stage is not Stage.UNSTABLE:  # which says nothing
            self._judge(event.candidate, event.evaluation)

    def _note_resumed(self, event: RunResumed) -> None:
        self.resumed += 1
        self.ended, self.unconfirmed, self.unfit = None, "", None
        if event.budget is not None:
            self.config = self.config.model_copy(update={"budget": event.budget})

    def _judge(self, candidate: str, evaluation: Evaluation) -> None:
        """Put what a program showed now in the place of what it had shown."""
        self.funnel.subtract(self._passed.get(candidate, ()))
        self._passed[candidate] = gates_passed(evaluation)
        self.funnel.update(self._passed[candidate])

    def _note_lead(self) -> None:
        """A challenger shows in the curve once it was measured again."""
        best = self.ranking.best
        if best in self.ranking.challenges or (best is None and not self.curve):
            return
        reached = self.ranking.score(best)
        if not self.curve or self.curve[-1].score != reached:
            self.curve.append(Lead(self.last_step, self.funnel["evaluated"], reached))

    def _count_time(self, event: Event) -> None:
        """Only what passes while somebody works on the run, not the pauses in between."""
        outside = isinstance(event, StepProposed) and event.proposal.proposer == OUTSIDE
        if not outside and not isinstance(event, RunResumed):
            self.seconds += max(0.0, (event.at - self._latest).total_seconds())
        self._latest = event.at

    def _pay(self, conversation: Conversation | None) -> None:
        if conversation is not None:
            self.usage += conversation.usage


def gates_passed(evaluation: Evaluation) -> tuple[str, ...]:
    """Tell how far a program came: compiled, correct, honest, faster beyond doubt."""
    passed: list[str] = []
    for gate, stopped in _STOPPED_AT.items():
        if evaluation.stage in stopped:
            return tuple(passed)
        passed.append(gate)
    return (*passed, "faster") if score(evaluation) > 1 else tuple(passed)


def curve_by_evaluation(facts: RunFacts) -> list[float]:
    """Return the score of the best after each evaluation, and what was measured again before the
    next."""
    by_count = {lead.evaluations: lead.score for lead in facts.curve}
    reached, curve = 0.0, []
    for count in range(1, facts.funnel["evaluated"] + 1):
        reached = by_count.get(count, reached)
        curve.append(reached)
    return curve
