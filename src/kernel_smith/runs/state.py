"""The state of a run: a fold over its events. A resumed run knows what the first one knew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from kernel_smith.programs import fingerprint
from kernel_smith.records import (
    Attempt,
    Candidate,
    Counted,
    Elite,
    Evaluation,
    Event,
    Failure,
    Interval,
    Label,
    Proposal,
    Remeasured,
    Stage,
    StepDropped,
    StepEvaluated,
    StepProposed,
    shown_faster,
)
from kernel_smith.records.gains import certain_gain, timed_beside
from kernel_smith.records.prose import headline
from kernel_smith.search.front import WorkloadFront
from kernel_smith.search.lessons import LessonBook
from kernel_smith.store import RunFacts

_FAILURES_SHOWN = 3
_SEED = "seed"
_EAGER, _COMPILED = "eager", {"compile", "max-autotune"}
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
    attempt: Attempt | None = None
    """The same for whoever proposes the next one; made when it is asked for."""

    @property
    def parent(self) -> str | None:
        return self.proposal.parents[0] if self.proposal.parents else None


@dataclass
class RunState(RunFacts):
    """Everything that was learned so far: the facts, and what they are facts about."""

    steps: dict[int, Step] = field(default_factory=dict)
    evaluated: dict[str, Elite] = field(default_factory=dict)
    known: dict[str, str] = field(default_factory=dict)
    """The program that was proposed first of those that differ in looks alone, by fingerprint."""
    confirmations: dict[str, list[Evaluation]] = field(default_factory=dict)
    """Of candidates that were measured at full length after they had been chosen, newest last."""
    tried: list[str] = field(default_factory=list)
    """Whom that was done to since the last step was evaluated."""
    failures: dict[str | None, list[Failure]] = field(default_factory=dict)
    seeds: list[str] = field(default_factory=list)
    """What the framework's compiler wrote and the judge accepted."""
    lessons: LessonBook = field(default_factory=LessonBook)
    front: WorkloadFront = field(default_factory=WorkloadFront)
    """Who is best on which workload."""
    baselines: dict[str, float] = field(default_factory=dict)
    """How many times as fast as eager the framework's compiler is, by mode, as far as is known."""
    children: Counter[str] = field(default_factory=Counter)
    """How many programs were made from each."""
    _concerned: dict[str, list[Step]] = field(default_factory=dict)
    """The steps from and to a program."""
    made: dict[str, Step] = field(default_factory=dict)
    """The step that led to a program first."""
    _untimed: dict[str, None] = field(default_factory=dict)
    """Programs that are correct as far as can be said, where nothing is timed; the first first."""

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
        self.note(event)
        match event:
            case StepProposed():
                return self._add_step(event)
            case StepEvaluated():
                return self._add_evaluation(event)
            case StepDropped():
                self.steps.pop(event.step, None)
            case Remeasured():
                self._replace_evaluation(event)
            case Counted():
                self._note_counters(event)
        return None

    def is_known(self, candidate: Candidate) -> bool:
        """Was this program, or one that differs in looks alone, proposed before?"""
        return fingerprint(candidate) in self.known or candidate.content_hash in self.evaluated

    def recall(self, candidate: Candidate) -> str:
        """Say what is known of a program, or of one that differs in looks alone; nothing where it
        is new. May be called from any thread."""
        name = self.known.get(fingerprint(candidate), candidate.content_hash)
        step, elite = self.made.get(name), self.evaluated.get(name)
        if step is None:
            return ""
        verdict = headline(elite.evaluation) if elite is not None else "it is being judged"
        return f"step {step.number}, {step.proposal.summary or 'a change'!r}: {verdict}"

    def failures_of(self, parent: str | None) -> tuple[Failure, ...]:
        """Return what was made from a program, or from those that it descends from, and failed;
        the nearest and newest last. None: first programs."""
        found: list[Failure] = []
        for name in self.lineage(parent):
            missing = _FAILURES_SHOWN - len(found)
            if missing <= 0:
                break
            found = self.failures.get(name, [])[-missing:] + found
        return tuple(found)

    def lineage(self, candidate: str | None) -> Iterator[str | None]:
        """From a program to the one that it all began with, along the parent that was changed; for
        None, which stands for first programs, that alone."""
        seen: set[str | None] = set()
        while candidate not in seen:
            yield candidate
            seen.add(candidate)
            step = self.made.get(candidate or "")
            if step is None or step.parent is None:
                return
            candidate = step.parent

    def steps_about(self, candidate: str) -> tuple[Step, ...]:
        """Return the steps that led to a program, or away from it."""
        return tuple(self._concerned.get(candidate, ()))

    def is_challenging(self, elite: Elite) -> bool:
        """Has it taken the lead, and not been measured again yet?"""
        return elite.candidate.content_hash in self.ranking.challenges

    def in_flight(self) -> list[Step]:
        """Steps that were proposed and never finished: those of a run that was interrupted."""
        return [step for step in self.steps.values() if step.evaluation is None]

    def _add_step(self, event: StepProposed) -> Step:
        proposal = event.proposal
        step = self.steps[event.step] = Step(event.step, event.label, proposal)
        self.known.setdefault(fingerprint(proposal.candidate), proposal.candidate.content_hash)
        self.made.setdefault(proposal.candidate.content_hash, step)
        self._concerned.setdefault(proposal.candidate.content_hash, []).append(step)
        if step.parent is not None:
            self.children[step.parent] += 1
            self._concerned.setdefault(step.parent, []).append(step)
        return step

    def _add_evaluation(self, event: StepEvaluated) -> Step:
        step, evaluation = self.steps[event.step], event.evaluation
        step.evaluation = evaluation
        elite = Elite(candidate=step.proposal.candidate, evaluation=evaluation)
        self.evaluated[elite.candidate.content_hash] = elite
        self.tried.clear()
        self._note_baselines(evaluation)
        if not evaluation.ok:
            self._note_failure(step.parent, step.proposal, evaluation)
        elif not self.ranking.is_twin(evaluation):
            self._note_untimed(elite)
            self.front.note(elite)
            if step.proposal.proposer == _SEED:
                self.seeds.append(elite.candidate.content_hash)
        self._credit(step)
        return step

    def _note_baselines(self, evaluation: Evaluation) -> None:
        """From what an engine has kept, and from a program that was timed against several."""
        for known in evaluation.known_baselines:
            self.baselines.setdefault(known.baseline, known.ratio)
        timed = evaluation.timing.speedups if evaluation.timing is not None else ()
        speedups = {each.baseline: each.speedup.value for each in timed}
        for name in _COMPILED & speedups.keys() if _EAGER in speedups else ():
            self.baselines[name] = speedups[_EAGER] / speedups[name]

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
        step.attempt = None
        step.beside = timed_beside(child.evaluation, step.parent) or step.beside
        gain = certain_gain(child.evaluation, parent.evaluation if parent else None, step.beside)
        if step.parent is not None:
            self.lessons.note(step.number, step.proposal.summary, gain)
        step.worth = 0.0 if self.ranking.is_twin(child.evaluation) else gain

    def _note_failure(self, parent: str | None, proposal: Proposal, evaluation: Evaluation) -> None:
        assert evaluation.reason is not None
        failure = Failure(
            summary=proposal.summary,
            stage=evaluation.stage,
            reason=evaluation.reason,
            message=(evaluation.message or evaluation.log)[:_LONGEST_MESSAGE],
        )
        self.failures.setdefault(parent, []).append(failure)

    def _note_counters(self, event: Counted) -> None:
        known = self.evaluated[event.candidate]
        shown = known.evaluation.model_copy(update={"nsight": event.nsight})
        self.evaluated[event.candidate] = Elite(candidate=known.candidate, evaluation=shown)

    def _replace_evaluation(self, event: Remeasured) -> None:
        name, evaluation = event.candidate, event.evaluation
        self._note_baselines(evaluation)
        if event.confirming:
            self.confirmations.setdefault(name, []).append(evaluation)
            self.tried.append(name)
        else:
            self.confirmations.pop(name, None)
        if evaluation.stage is not Stage.UNSTABLE:  # which says nothing
            known = self.evaluated[name]
            counted = known.evaluation.nsight or evaluation.nsight
            if counted:
                evaluation = evaluation.model_copy(update={"nsight": counted})
            self.evaluated[name] = Elite(candidate=known.candidate, evaluation=evaluation)
            if name in self.ranking.scores:
                self.front.note(self.evaluated[name])
            if name in self._untimed:
                self._note_untimed(self.evaluated[name])
        for step in self._concerned.get(name, ()):
            if step.evaluation is not None:
                self._credit(step)
