"""Evaluations of programs that were timed, without a judge."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kernel_smith.records import Candidate, Evaluation, Stage
from kernel_smith.records.evaluation import (
    Accuracy,
    BaselineSpeedup,
    BaselineTiming,
    Distribution,
    Environment,
    Interval,
    Timing,
    WorkloadTiming,
)


def evaluated(
    candidate: Candidate, speedup: float, width: float = 0.0, **changes: Any
) -> Evaluation:
    interval = Interval(value=speedup, low=speedup * (1 - width), high=speedup * (1 + width))
    spread = Distribution(p50=1.0, p99=1.0)
    row = BaselineTiming(baseline="eager", speedup=interval, seconds=spread)
    workload = WorkloadTiming(
        workload="default", weight=1, candidate=spread, baselines=(row,), rounds=1, calls=1
    )
    whole = BaselineSpeedup(baseline="eager", speedup=interval)
    place = dict.fromkeys(Environment.model_fields, "x")
    return Evaluation(
        task="t",
        task_hash="t",
        candidate_hash=candidate.content_hash,
        backend=candidate.backend,
        stage=Stage.OK,
        accuracy=Accuracy(candidate_error=0.0, reference_error=0.0, allowed_error=1.0),
        timing=Timing(speedups=(whole,), workloads=(workload,), cores=(0,)),
        environment=Environment(**place),
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        **changes,
    )
