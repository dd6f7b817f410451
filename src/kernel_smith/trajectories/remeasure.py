"""Measure steps again, side by side with parent and grandparent, before a model learns from them.

In a run a child is mostly timed alone, and its gain is the quotient of two measurings. Here child
and parent take part in the same rounds, which makes small gains certain or shows that they were
none. It costs two evaluations a step, so filter first, and then once more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
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
from kernel_smith.trajectories.gains import gain_over_reference, side_by_side
from kernel_smith.trajectories.measurings import Measurings, key_of


def remeasure(
    steps: Iterable[TrainingStep],
    engine: Evaluator,
    cache: Path,
    *,
    options: Options | None = None,
    in_flight: int = 4,
) -> Iterator[TrainingStep]:
    """The steps, in order, with the child's new evaluation and gains that were timed side by side.

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

    @classmethod
    def begin(
        cls,
        step: TrainingStep,
        engine: Evaluator,
        options: Options | None,
        measurings: Measurings,
    ) -> _Measured:
        def measure(beside: Candidate | None) -> _Measuring:
            child = step.child.candidate
            key = key_of(step.task, child, beside, options)
            known = measurings.get(key)
            if known is None:
                return _Measuring(key, engine.submit(step.task, child, options, beside=beside))
            future: Future[Evaluation] = Future()
            future.set_result(known)
            return _Measuring(key, future)

        parent = measure(step.parent.candidate if step.parent else None)
        return cls(step, parent, measure(step.grandparent) if step.grandparent else None)

    def finish(self, measurings: Measurings) -> TrainingStep:
        step = self.step
        shown = self.beside_parent.result(measurings)
        again = self.beside_grandparent.result(measurings) if self.beside_grandparent else None
        gain = _gain(shown, step.parent, step.gain) if step.parent else gain_over_reference(shown)
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


def _gain(shown: Evaluation, parent: Elite, before: StepGain | None) -> StepGain | None:
    gain = side_by_side(shown, parent.evaluation) if shown.ok else None
    if gain is None or gain.p99 is not None or before is None:
        return gain
    # P99s of another machine do not compare with those of this one; those of the run do.
    return gain.model_copy(update={"p99": before.p99})


def _gain_over_grandparent(again: Evaluation | None, step: TrainingStep) -> StepGain | None:
    beside = again.beside if again is not None and again.ok else None
    if beside is None or beside.gain is None or step.grandparent is None:
        return None
    return StepGain(overall=beside.gain, workloads=beside.workloads, side_by_side=True)


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
