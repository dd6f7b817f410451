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
    Migrated,
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
    Usage,
    score,
    shown_faster,
)
from kernel_smith.records.gains import certain_gain, timed_beside
from kernel_smith.search.bandit import Bandit
from kernel_smith.search.islands import Added, Archive, ArchiveConfig
from kernel_smith.search.lessons import Lessons
from kernel_smith.store import Ranking

OUTSIDE = "outside"
"""The proposer of what somebody tells a run."""
NO_PARENT = ""
"""Stands for the parent of first programs."""
_FAILURES_SHOWN = 3
_LONGEST_MESSAGE = 600


@dataclass
class Step:
    """One proposal, and what came of it."""

    number: int
    island: int
    proposal: Proposal
    evaluation: Evaluation | None = None
    added: Added | None = None
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
    archive: Archive
    bandit: Bandit
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
    failures: dict[str, list[Failure]] = field(default_factory=dict)
    lessons: Lessons = field(default_factory=Lessons)
    funnel: Counter[str] = field(default_factory=Counter)
    by_proposer: Counter[str] = field(default_factory=Counter)
    usage: Usage = field(default_factory=Usage)
    dropped: Counter[str] = field(default_factory=Counter)
    device_seconds: float = 0.0
    seconds: float = 0.0
    curve: list[tuple[int, float]] = field(default_factory=list)
    since_best: int = 0
    last_step: int = -1
    ended: str | None = None
    _latest: datetime = field(init=False)
    _concerned: dict[str, list[Step]] = field(default_factory=dict)
    """The steps from and to a program."""

    @classmethod
    def begin(cls, event: RunStarted) -> RunState:
        archive = Archive(ArchiveConfig.of(event.config), event.config.seed)
        bandit = Bandit(event.config.proposers)
        state = cls(event.run, event.task, event.config, event.at, archive, bandit)
        state._latest = event.at
        return state

    @property
    def best(self) -> Elite | None:
        """Where nothing is timed, whoever the archive puts first."""
        best = self.ranking.best
        return self.archive.best if best is None else self.evaluated[best]

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
                if event.conversation is not None:
                    self.usage += event.conversation.usage
                self.bandit.reward(event.proposer, 0.0)
            case Remeasured():
                self._remeasured(event)
            case Migrated():
                self.archive.add(self.evaluated[event.candidate], event.target)
            case RunEnded():
                self.ranking.hear(event)
                self.ended, self.unconfirmed = event.why, event.unconfirmed
            case RunResumed():
                self.ranking.hear(event)
                self.ended, self.unconfirmed = None, ""
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

    def failures_of(self, parent: str) -> tuple[Failure, ...]:
        return tuple(self.failures.get(parent, [])[-_FAILURES_SHOWN:])

    def in_flight(self) -> list[Step]:
        """Steps that were proposed and never finished: those of a run that was interrupted."""
        return [step for step in self.steps.values() if step.evaluation is None]

    def _proposed(self, event: StepProposed) -> Step:
        proposal = event.proposal
        step = self.steps[event.step] = Step(event.step, event.island, proposal)
        self.last_step = max(self.last_step, event.step)
        self.known.add(fingerprint(proposal.candidate))
        self.by_proposer[proposal.proposer] += 1
        self.funnel["proposed"] += 1
        if proposal.conversation is not None:
            self.usage += proposal.conversation.usage
        self._concerned.setdefault(proposal.candidate.content_hash, []).append(step)
        if step.parent is not None:
            self.archive.note_child(step.parent)
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
        before = self.best.score if self.best is not None else 0.0
        is_twin = evaluation.ok and self.ranking.is_twin(evaluation)
        self.ranking.hear(event)
        if is_twin:
            self.funnel["twins"] += 1
        elif evaluation.ok:
            step.added = self.archive.add(elite, step.island)
        else:
            self._note_failure(step.parent or NO_PARENT, step.proposal, evaluation)
        if self.best is not None and self.best.score > before:
            self.since_best = 0
            self.curve.append((event.step, self.best.score))
        self.bandit.reward(step.proposal.proposer, self._credit(step), step.number)
        return step

    def _credit(self, step: Step) -> float:
        """Note what a step has taught by all that is known now; what it is worth to a proposer."""
        child = self.evaluated[step.proposal.candidate.content_hash]
        parent = self.evaluated.get(step.parent or "")
        step.beside = timed_beside(child.evaluation, step.parent) or step.beside
        gain = certain_gain(child.evaluation, parent.evaluation if parent else None, step.beside)
        if step.parent is not None:
            self.lessons.note(step.number, step.proposal.summary, gain)
        return 0.0 if self.ranking.is_twin(child.evaluation) else gain

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

    def _note_failure(self, parent: str, proposal: Proposal, evaluation: Evaluation) -> None:
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
        self.archive.update(name, evaluation)
        self.ranking.hear(event)
        for step in self._concerned.get(name, ()):
            if step.evaluation is not None:
                self.bandit.correct(step.proposal.proposer, self._credit(step), step.number)
        best = self.ranking.best
        if best is not None and best not in self.archive:
            self.archive.add(self.evaluated[best], 0)  # it was turned away when others led
        if self.best is not None:
            self.curve.append((self.last_step, self.best.score))
