"""A run's pages as a fold over its events: what `History` knows, and what pictures need beside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from kernel_smith.errors import BadInput
from kernel_smith.records import (
    Candidate,
    Ceilings,
    ConfirmationBegun,
    Conversation,
    Counted,
    Distribution,
    Elite,
    Evaluation,
    Event,
    Interval,
    MeasuredInVain,
    Noted,
    Remeasured,
    Roofline,
    RunStarted,
    Stage,
    StepDropped,
    StepEvaluated,
    StepProposed,
    Usage,
)
from kernel_smith.search.islands import FEATURES, Feature
from kernel_smith.store import History, StepFacts
from kernel_smith.viewer.records import CurvePoint, Gain, RooflinePoint, Span

CellOf = Callable[[Elite], tuple[str, ...]]


@dataclass
class StepTrace:
    """What is known of a step beside `StepFacts`: where its events are, and its measurements."""

    proposed: int
    """The number of the event."""
    model: str | None
    evaluated: int | None = None
    remeasured: list[int] = field(default_factory=list)
    ended: float | None = None
    seconds: float | None = None
    cell: tuple[str, ...] | None = None
    twin: bool = False
    last: int | None = None
    """The number of the last event whose evaluation says something."""
    call_seconds: Distribution | None = None
    """What that evaluation says of a call, on the first workload."""
    rooflines: tuple[Roofline, ...] = ()


@dataclass
class RunFold:
    """Give it every event, in order: `fold.add(sequence, event)`."""

    traces: dict[int, StepTrace] = field(default_factory=dict)
    sequence: int = 0
    at: datetime | None = None
    dropped: Counter[tuple[str, str]] = field(default_factory=Counter)
    model_usage: dict[str, Usage] = field(default_factory=dict)
    made_up: bool = False
    machine: str = ""
    curve: list[CurvePoint] = field(default_factory=list)
    gains: list[Gain] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    ceilings: Ceilings | None = None
    axes: tuple[Feature, ...] = ()
    _history: History | None = None
    _candidates: dict[int, Candidate] = field(default_factory=dict)
    """Of steps in flight: once evaluated, their cell is known."""

    _confirming: datetime | None = None
    """When the last measuring at full length began."""

    @property
    def history(self) -> History:
        """What is known once the run has begun."""
        assert self._history is not None
        return self._history

    def add(self, sequence: int, event: Event) -> None:
        self.sequence, self.at = sequence, event.at
        if isinstance(event, RunStarted):
            self._history = History.begin(event)
            self.axes = tuple(FEATURES[name] for name in event.config.features)
            return
        twin = isinstance(event, StepEvaluated) and self.history.ranking.is_twin(event.evaluation)
        held = len(self.history.ranking.held)
        self.history.add(event)
        match event:
            case StepProposed():
                self._proposed(sequence, event)
            case StepEvaluated():
                self._evaluated(sequence, event, twin=twin)
            case StepDropped():
                self.traces.pop(event.step, None)
                self.dropped[event.proposer, event.why] += 1
                self._count_usage(event.conversation)
            case Noted():
                self._count_usage(event.note.conversation)
            case ConfirmationBegun():
                self._confirming = event.at
            case Remeasured():
                self._remeasured(sequence, event)
            case MeasuredInVain() | Counted():
                self._span(event.at, event.seconds, "again")
        if isinstance(event, StepEvaluated | Remeasured):
            self._note_best(event.evaluation, len(self.history.ranking.held) > held)

    def elapsed(self, at: datetime) -> float:
        """Seconds after the start of the run."""
        return round((at - self.history.started).total_seconds(), 3)

    def _proposed(self, sequence: int, event: StepProposed) -> None:
        conversation = event.proposal.conversation
        model = conversation.model if conversation is not None else None
        self.traces[event.step] = StepTrace(proposed=sequence, model=model)
        self._candidates[event.step] = event.proposal.candidate
        self._count_usage(conversation)

    def _count_usage(self, conversation: Conversation | None) -> None:
        if conversation is not None:
            known = self.model_usage.get(conversation.model, Usage())
            self.model_usage[conversation.model] = known + conversation.usage

    def _evaluated(self, sequence: int, event: StepEvaluated, *, twin: bool) -> None:
        trace, evaluation = self.traces[event.step], event.evaluation
        trace.evaluated, trace.seconds = sequence, event.seconds
        trace.ended = self.elapsed(event.at)
        trace.twin = evaluation.ok and twin
        candidate = self._candidates.pop(event.step)
        if evaluation.ok:
            trace.cell = self._cell(Elite(candidate=candidate, evaluation=evaluation))
        self._measured(sequence, trace, evaluation)
        self._span(event.at, event.seconds, "step")

    def _remeasured(self, sequence: int, event: Remeasured) -> None:
        facts = self.history.by_candidate.get(event.candidate)
        if facts is not None and facts.step in self.traces:
            trace = self.traces[facts.step]
            trace.remeasured.append(sequence)
            if event.evaluation.stage is not Stage.UNSTABLE:
                self._measured(sequence, trace, event.evaluation)
        seconds = event.seconds
        if event.confirming and self._confirming is not None:
            seconds = seconds or (event.at - self._confirming).total_seconds()
        self._span(event.at, seconds, "full" if event.confirming else "again")

    def _measured(self, sequence: int, trace: StepTrace, evaluation: Evaluation) -> None:
        """Evaluations themselves are not kept: thousands of them would slow everything down."""
        timing = evaluation.timing
        trace.last, trace.rooflines = sequence, evaluation.rooflines
        trace.call_seconds = timing.workloads[0].candidate if timing is not None else None
        self.made_up = self.made_up or evaluation.made_up
        self.ceilings = evaluation.ceilings or self.ceilings
        if timing is not None:
            environment, device = evaluation.environment, evaluation.device
            self.machine = device.name if device is not None else environment.processor

    def _span(self, at: datetime, seconds: float, what: str) -> None:
        end = self.elapsed(at)
        begin = max(0.0, round(end - seconds, 3))
        self.spans.append(Span.model_validate({"begin": begin, "end": end, "what": what}))

    def _cell(self, elite: Elite) -> tuple[str, ...] | None:
        try:
            return tuple(feature.of(elite) for feature in self.axes)
        except (BadInput, SyntaxError):  # text that no program could be made of
            return None

    def _note_best(self, evaluation: Evaluation, is_new: bool) -> None:
        """A challenger counts once it was measured again."""
        best = self.history.best
        if best is None or best.speedup is None or self.at is None:
            return
        if best.candidate in self.history.ranking.challenges:
            return
        at, evaluations = self.elapsed(self.at), self.history.funnel["evaluated"]
        before = self.curve[-1] if self.curve else None
        if is_new:
            beside = self._beside(evaluation, best, before)
            self.gains.append(_gain(best, best.speedup, before, beside, evaluations, at))
        if before is None or (before.best, before.step) != (best.speedup, best.step):
            self.curve.append(
                CurvePoint(evaluations=evaluations, at=at, best=best.speedup, step=best.step)
            )

    def _beside(
        self, evaluation: Evaluation, best: StepFacts, before: CurvePoint | None
    ) -> Interval | None:
        """Tell how much faster than the former best it was in the same rounds, if they were
        timed so."""
        other = evaluation.beside
        if before is None or other is None or evaluation.candidate_hash != best.candidate:
            return None
        former = self.history.steps[before.step].candidate
        return other.gain if other.candidate_hash == former else None

    def rooflines(self, positions: dict[int, int]) -> list[RooflinePoint]:
        """Return every workload of every step that has one."""
        return [
            RooflinePoint(
                position=positions[step],
                workload=each.workload,
                intensity=each.flops / each.bytes if each.flops and each.bytes else None,
                flops_per_second=each.flops_per_second,
                bytes_per_second=each.bytes_per_second,
                bound=each.bound,
                share=each.share,
                precision=each.precision,
            )
            for step, trace in self.traces.items()
            for each in trace.rooflines
        ]


def _gain(
    best: StepFacts,
    speedup: Interval,
    before: CurvePoint | None,
    beside: Interval | None,
    evaluations: int,
    at: float,
) -> Gain:
    return Gain(
        step=best.step,
        evaluations=evaluations,
        at=at,
        speedup=speedup,
        before=before.best.value if before is not None else None,
        beside=beside,
    )
