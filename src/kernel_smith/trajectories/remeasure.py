"""Measure steps again, side by side with parent and grandparent, before a model learns from them.

In a run a child is mostly timed alone, and its gain is the quotient of two measurings. Here child
and parent take part in the same rounds, which makes small gains certain or shows that they were
none. It costs two evaluations a step, so filter first, and then once more.

Of many steps without a gain some look as if they had one, whichever way they are measured. So a
gain that nothing had shown before is measured once more, the parent beside the child.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from kernel_smith.evaluation.engines.base import Evaluator
from kernel_smith.records import (
    MEANINGS,
    Candidate,
    Elite,
    Evaluation,
    Options,
    Stage,
    StepGain,
    TrainingStep,
)
from kernel_smith.records.gains import gain_over_reference, side_by_side
from kernel_smith.trajectories.measurings import Measurings, key_of


def remeasure(
    steps: Iterable[TrainingStep],
    engine: Evaluator,
    cache: Path,
    *,
    options: Options | None = None,
    in_flight: int = 4,
) -> Iterator[TrainingStep]:
    """The steps, in order, with the child's new evaluation and gains that were timed side by side,
    none of them by the measuring that first showed it.

    `cache`: a file that keeps what was measured, for whoever does the same again.
    `in_flight`: steps that are measured at once. A child that fails now has failed.
    """
    with Measurings(cache) as measurings:
        waiting: deque[_Measured] = deque()
        for step in steps:
            waiting.append(_Measured.begin(step, engine, options, measurings))
            if len(waiting) >= in_flight:
                yield waiting.popleft().finish(measurings)
        while waiting:
            yield waiting.popleft().finish(measurings)


@dataclass(frozen=True)
class _Measuring:
    key: bytes
    future: Future[Evaluation]

    def result(self, measurings: Measurings) -> Evaluation:
        evaluation = self.future.result()
        measurings.put(self.key, evaluation)
        return evaluation


@dataclass(frozen=True)
class _Measured:
    """A step whose child is being evaluated: beside its parent, and beside its grandparent."""

    step: TrainingStep
    beside_parent: _Measuring
    beside_grandparent: _Measuring | None
    measure: Callable[[Candidate, Candidate | None], _Measuring]

    @classmethod
    def begin(
        cls,
        step: TrainingStep,
        engine: Evaluator,
        options: Options | None,
        measurings: Measurings,
    ) -> _Measured:
        def measure(candidate: Candidate, beside: Candidate | None) -> _Measuring:
            key = key_of(step.task, candidate, beside, options)
            known = measurings.get(key)
            if known is None:
                return _Measuring(key, engine.submit(step.task, candidate, options, beside=beside))
            future: Future[Evaluation] = Future()
            future.set_result(known)
            return _Measuring(key, future)

        child, grandparent = step.child.candidate, step.grandparent
        beside_parent = measure(child, step.parent.candidate if step.parent else None)
        beside_grandparent = measure(child, grandparent) if grandparent else None
        return cls(step, beside_parent, beside_grandparent, measure)

    def finish(self, measurings: Measurings) -> TrainingStep:
        step = self.step
        shown = self.beside_parent.result(measurings)
        again = self.beside_grandparent.result(measurings) if self.beside_grandparent else None
        gain = self._gain(shown, measurings)
        verdict = again if again is not None and not again.ok else shown
        caught = [*step.flagged, *_caught(shown), *_caught(again)]
        return step.model_copy(
            update={
                "child": Elite(candidate=step.child.candidate, evaluation=verdict),
                "gain": gain,
                "gain_over_grandparent": _gain_over_grandparent(again, step),
                "flagged": tuple(dict.fromkeys(caught)),
            }
        )

    def _gain(self, shown: Evaluation, measurings: Measurings) -> StepGain | None:
        parent, before = self.step.parent, self.step.gain
        if parent is None:
            return gain_over_reference(shown)
        gain = side_by_side(shown, parent.evaluation) if shown.ok else None
        if gain is not None and _is_certain(gain) and not _is_certain(before):
            back = self.measure(parent.candidate, self.step.child.candidate).result(measurings)
            gain = _the_other_way_round(back, gain)
        if gain is None:
            return None
        # P99s of another machine do not compare with those of this one; those of the run do.
        p99 = gain.p99 if gain.p99 is not None or before is None else before.p99
        return gain.model_copy(update={"p99": p99, "measured_again": True})


def _is_certain(gain: StepGain | None) -> bool:
    return gain is not None and gain.overall.certain > 1


def _the_other_way_round(back: Evaluation, there: StepGain) -> StepGain | None:
    """The gain as the parent's evaluation beside the child shows it; None: it does not."""
    beside = back.beside if back.ok else None
    if beside is None or beside.gain is None:
        return None
    workloads = tuple(
        each.model_copy(update={"gain": each.gain.inverse}) for each in beside.workloads
    )
    return there.model_copy(update={"overall": beside.gain.inverse, "workloads": workloads})


def _gain_over_grandparent(again: Evaluation | None, step: TrainingStep) -> StepGain | None:
    beside = again.beside if again is not None and again.ok else None
    if beside is None or beside.gain is None or step.grandparent is None:
        return None
    return StepGain(
        overall=beside.gain, workloads=beside.workloads, side_by_side=True, measured_again=True
    )


def _caught(evaluation: Evaluation | None) -> Iterator[str]:
    """Whoever is wrong or cheats now."""
    if evaluation is None:
        return
    beside = evaluation.beside
    for candidate, reason in (
        (evaluation.candidate_hash, evaluation.reason),
        (beside.candidate_hash if beside else "", beside.reason if beside else None),
    ):
        if reason is not None and MEANINGS[reason].stage in (Stage.INCORRECT, Stage.CHEATING):
            yield candidate
