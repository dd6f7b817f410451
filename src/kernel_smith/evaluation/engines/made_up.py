"""Evaluations that nobody made: for devices that pretend, and for tests of what is around them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from kernel_smith.records import (
    MEANINGS,
    Accuracy,
    BaselineSpeedup,
    BaselineTiming,
    Beside,
    Candidate,
    Distribution,
    Environment,
    Evaluation,
    Interval,
    Reason,
    Stage,
    Task,
    Timing,
    WorkloadTiming,
)

_ENVIRONMENT = Environment(**dict.fromkeys(Environment.model_fields, "none"))
_SECONDS = Distribution(p50=1e-6, p99=1e-6)
_ACCURACY = Accuracy(candidate_error=0.0, reference_error=0.0, allowed_error=1e-5)


def made_up(
    task: Task,
    candidate: Candidate,
    outcome: float | Reason,
    *,
    half_width: float = 0.01,
    baselines: Sequence[str] = ("eager",),
    environment: Environment = _ENVIRONMENT,
) -> Evaluation:
    """A valid evaluation with this speedup against every baseline, or with this reason why there
    is none."""
    common: dict[str, Any] = {
        "task": task.name,
        "task_hash": task.content_hash,
        "candidate_hash": candidate.content_hash,
        "backend": candidate.backend,
        "made_up": True,
        "environment": environment,
        "created_at": datetime.now(UTC),
    }
    if isinstance(outcome, Reason):
        return Evaluation(stage=MEANINGS[outcome].stage, reason=outcome, **common)
    speedup = Interval(
        value=outcome, low=outcome * (1 - half_width), high=outcome * (1 + half_width)
    )
    timing = Timing(
        speedups=tuple(BaselineSpeedup(baseline=name, speedup=speedup) for name in baselines),
        workloads=tuple(
            _timing(workload.name, workload.weight, speedup, baselines)
            for workload in task.workloads
        ),
        cores=(0,),
    )
    return Evaluation(stage=Stage.OK, timing=timing, accuracy=_ACCURACY, **common)


def made_up_beside(evaluation: Evaluation, other: Evaluation) -> Evaluation:
    """The same, timed beside another candidate whose evaluation would be `other`."""
    mine, theirs = evaluation.timing, other.timing
    if mine is None:
        return evaluation
    beside = Beside(candidate_hash=other.candidate_hash, reason=other.reason)
    if theirs is not None:
        ratio = mine.speedup.value / theirs.speedup.value
        beside = Beside(
            candidate_hash=other.candidate_hash,
            gain=Interval(value=ratio, low=ratio * 0.99, high=ratio * 1.01),
        )
    return evaluation.model_copy(update={"beside": beside})


def _timing(
    workload: str, weight: float, speedup: Interval, baselines: Sequence[str]
) -> WorkloadTiming:
    return WorkloadTiming(
        workload=workload,
        weight=weight,
        candidate=_SECONDS,
        baselines=tuple(
            BaselineTiming(baseline=name, speedup=speedup, seconds=_SECONDS) for name in baselines
        ),
        rounds=1,
        calls=1,
    )
