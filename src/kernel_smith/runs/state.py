"""The state of a run: a fold over its events. A resumed run knows what the first one knew."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from kernel_smith.programs import fingerprint
from kernel_smith.records import (
    Candidate,
    Elite,
    Evaluation,
    Event,
    Failure,
    Interval,
    Label,
    Noted,
    Proposal,
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
    shown_faster,
)
from kernel_smith.records.gains import certain_gain, timed_beside
from kernel_smith.search.lessons import LessonBook
from kernel_smith.store import Ranking

OUTSIDE = "outside"
"""The proposer of what somebody tells a run."""
_FAILURES_SHOWN = 3
_LONGEST_MESSAGE = 600


@dataclass
class Step:
    """One proposal, and what came of it."""

    number: int
    label: Label
    proposal: Proposal
    evaluation: Evaluation | None = None
    worth: float = 0.0
    """What is certain of its gain, over its parent or the reference; nothing where it is a twin."""
    beside: Interval | None = None
    """The gain over the parent as it was last timed in the same rounds."""

    @property
    def parent(self) -> str | None:
        return self.proposal.parents[0] if self.proposal.parents else None


@dataclass
class RunState:
    """Everything that was learned so far."""

    run: str
    task: Task
    config: RunConfig
    started: datetime
    steps: dict[int, Step] = field(default_factory=dict)
    evaluated: dict[str, Elite] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    ranking: Ranking = field(default_factory=Ranking)
    confirmations: dict[str, list[Evaluation]] = field(default_factory=dict)
    """Of candidates that were measured at full length after they had been chosen, newest last."""
    tried: list[str] = field(default_factory=list)
    """Whom that was done to since the last step was evaluated."""
    unconfirmed: str = ""
    """Why the best was not measured at full length when the run ended."""
    failures: dict[str | None, list[Failure]] = field(default_factory=dict)
    lessons: LessonBook = field(default_factory=LessonBook)
    funnel: Counter[str] = field(default_factory=Counter)
    by_proposer: Counter[str] = field(default_factory=Counter)
    usage: Usage = field(default_factory=Usage)
    dropped: Counter[str] = field(default_factory=Counter)
    device_seconds: float = 0.0
    seconds: float = 0.0
    curve: list[tuple[int, float]] = field(default_factory=list)
    rounds: int = 0
    """Answers of the workers that the configuration names, those that were dropped included."""
    since_best: int = 0
    last_step: int = -1
    ended: str | None = None
    unfit: Unfit | None = None
    """What kept the task from being judged at all."""
    _latest: datetime = field(init=False)
    _concerned: dict[str, list[Step]] = field(default_factory=dict)
    """The steps from and to a program."""
    _untimed: dict[str, None] = field(default_factory=dict)
    """Programs that are correct as far as can be said, where nothing is timed; the first first."""

    @classmethod
    def begin(cls, event: RunStarted) -> RunState:
        state = cls(event.run, event.task, event.config, event.at)
        state._latest = event.at
        return state

    @property
    def best(self) -> Elite | None:
        """Where nothing is timed, the first program that is correct."""
        best = self.ranking.best or next(iter(self._untimed), None)
        return None if best is None else self.evaluated[best]

    @property
    def confirmation(self) -> Evaluation | None:
        """What the best showed at full length, by a measuring that did not choose it."""
        best = self.ranking.best
        return self.confirmations[best][-1] if best in self.confirmations else None

    @property
    def is_confirmed(self) -> bool:
        """Was the best shown to be faster than PyTorch, eager and compiled?"""
        return self.confirmation is not None and shown_faster(self.confirmation)

    def apply(self, event: Event) -> Step | None:
        """Take one event in; the step that it belongs to, if any."""
        self._count_time(event)
        match event:
            case StepProposed():
                self.ranking.hear(event)
                return self._proposed(event)
            case StepEvaluated():
                return self._evaluated(event)
            case StepDropped():
                self.last_step = max(self.last_step, event.step)
                self.funnel["dropped"] += 1
                self.dropped[event.proposer] += 1
                self.rounds += event.proposer in self.config.proposers
                if event.conversation is not None:
                    self.usage += event.conversation.usage
            case Noted():
                if event.note.conversation is not None:
                    self.usage += event.note.conversation.usage
            case Remeasured():
                self._remeasured(event)
            case RunEnded():
                self.ranking.hear(event)
                self.ended, self.unconfirmed = event.why, event.unconfirmed
                self.unfit = event.unfit
            case RunResumed():
                self.ranking.hear(event)
                self.ended, self.unconfirmed, self.unfit = None, "", None
                if event.budget is not None:
                    self.config = self.config.model_copy(update={"budget": event.budget})
        return None

    def _count_time(self, event: Event) -> None:
        """Only what passes while somebody works on the run, not the pauses in between."""
        outside = isinstance(event, StepProposed) and event.proposal.proposer == OUTSIDE
        if not outside and not isinstance(event, RunResumed):
            self.seconds += max(0.0, (event.at - self._latest).total_seconds())
        self._latest = event.at

    def is_known(self, candidate: Candidate) -> bool:
        """Was this program, or one that differs in looks alone, proposed before?"""
        return fingerprint(candidate) in self.known or candidate.content_hash in self.evaluated

    def failures_of(self, parent: str | None) -> tuple[Failure, ...]:
        """What was made from a program and failed, newest last; None: first programs."""
        return tuple(self.failures.get(parent, [])[-_FAILURES_SHOWN:])

    def steps_about(self, candidate: str) -> tuple[Step, ...]:
        """The steps that led to a program, or away from it."""
        return tuple(self._concerned.get(candidate, ()))

    def is_challenging(self, elite: Elite) -> bool:
        """Has it taken the lead, and not been measured again yet?"""
        return elite.candidate.content_hash in self.ranking.challenges

    def in_flight(self) -> list[Step]:
        """Steps that were proposed and never finished: those of a run that was interrupted."""
        return [step for step in self.steps.values() if step.evaluation is None]

    def _proposed(self, event: StepProposed) -> Step:
        proposal = event.proposal
        step = self.steps[event.step] = Step(event.step, event.label, proposal)
        self.last_step = max(self.last_step, event.step)
        self.known.add(fingerprint(proposal.candidate))
        self.by_proposer[proposal.proposer] += 1
        self.rounds += proposal.proposer in self.config.proposers
        self.funnel["proposed"] += 1
        if proposal.conversation is not None:
            self.usage += proposal.conversation.usage
        self._concerned.setdefault(proposal.candidate.content_hash, []).append(step)
        if step.parent is not None:
            self._concerned.setdefault(step.parent, []).append(step)
        return step

    def _evaluated(self, event: StepEvaluated) -> Step:
        step, evaluation = self.steps[event.step], event.evaluation
        step.evaluation = evaluation
        elite = Elite(candidate=step.proposal.candidate, evaluation=evaluation)
        self.evaluated[elite.candidate.content_hash] = elite
        self.device_seconds += event.seconds
        self._count(evaluation)
        self.since_best += 1
        self.tried.clear()
        bests = len(self.ranking.held)
        is_twin = evaluation.ok and self.ranking.is_twin(evaluation)
        self.ranking.hear(event)
        if is_twin:
            self.funnel["twins"] += 1
        elif evaluation.ok:
            self._note_untimed(elite)
        else:
            self._note_failure(step.parent, step.proposal, evaluation)
        self._note_lead(event.step, bests)
        self._credit(step)
        return step

    def _note_untimed(self, elite: Elite) -> None:
        name = elite.candidate.content_hash
        if self.config.untimed and elite.evaluation.ok and elite.evaluation.untimed:
            self._untimed[name] = None
        else:
            self._untimed.pop(name, None)

    def _credit(self, step: Step) -> None:
        """Note what a step has taught, and what it is worth, by all that is known now."""
        child = self.evaluated[step.proposal.candidate.content_hash]
        parent = self.evaluated.get(step.parent or "")
        step.beside = timed_beside(child.evaluation, step.parent) or step.beside
        gain = certain_gain(child.evaluation, parent.evaluation if parent else None, step.beside)
        if step.parent is not None:
            self.lessons.note(step.number, step.proposal.summary, gain)
        step.worth = 0.0 if self.ranking.is_twin(child.evaluation) else gain

    def _count(self, evaluation: Evaluation) -> None:
        """How far it came: compiled, correct, honest, faster."""
        stage = evaluation.stage
        self.funnel["evaluated"] += 1
        if stage not in (Stage.SCREENED_OUT, Stage.COMPILE_ERROR):
            self.funnel["compiled"] += 1
        if stage in (Stage.OK, Stage.CHEATING, Stage.UNSTABLE):
            self.funnel["correct"] += 1
        if stage in (Stage.OK, Stage.UNSTABLE):
            self.funnel["honest"] += 1
        if score(evaluation) > 1:
            self.funnel["faster"] += 1

    def _note_failure(self, parent: str | None, proposal: Proposal, evaluation: Evaluation) -> None:
        assert evaluation.reason is not None
        failure = Failure(
            summary=proposal.summary,
            stage=evaluation.stage,
            reason=evaluation.reason,
            message=(evaluation.message or evaluation.log)[:_LONGEST_MESSAGE],
        )
        self.failures.setdefault(parent, []).append(failure)

    def _remeasured(self, event: Remeasured) -> None:
        name, evaluation = event.candidate, event.evaluation
        if event.confirming:
            self.confirmations.setdefault(name, []).append(evaluation)
            self.tried.append(name)
        else:
            self.confirmations.pop(name, None)
        if evaluation.stage is not Stage.UNSTABLE:  # which says nothing
            known = self.evaluated[name].candidate
            self.evaluated[name] = Elite(candidate=known, evaluation=evaluation)
            if name in self._untimed:
                self._note_untimed(self.evaluated[name])
        bests = len(self.ranking.held)
        self.device_seconds += event.seconds
        self.ranking.hear(event)
        for step in self._concerned.get(name, ()):
            if step.evaluation is not None:
                self._credit(step)
        self._note_lead(self.last_step, bests)

    def _note_lead(self, step: int, bests: int) -> None:
        """A new best, of more than there were, starts the wait for the next one anew."""
        if len(self.ranking.held) > bests:
            self.since_best = 0
        if self.best is None or self.is_challenging(self.best):
            return
        if not self.curve or self.curve[-1][1] != self.best.score:
            self.curve.append((step, self.best.score))
