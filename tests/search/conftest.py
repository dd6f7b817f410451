"""Elites with any speedup and any source."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from kernel_smith.records import (
    MEANINGS,
    Accuracy,
    BaselineSpeedup,
    BaselineTiming,
    Candidate,
    Distribution,
    Elite,
    Environment,
    Evaluation,
    Interval,
    Reason,
    Stage,
    Timing,
    WorkloadTiming,
)

MakeEvaluation = Callable[..., Evaluation]
MakeElite = Callable[..., Elite]

_ENVIRONMENT = Environment(
    machine="aarch64",
    processor="a processor, 2 cores",
    kernel="Linux 6.1",
    python="3.11.7",
    torch="2.6.0",
    compiler="g++ 12",
    kernel_smith="0.1.0",
)
_ACCURACY = Accuracy(candidate_error=2e-7, reference_error=1e-7, allowed_error=4e-5)
_SECONDS = Distribution(p50=2e-5, p99=3e-5)


def _timing(low: float, high: float) -> Timing:
    speedup = Interval(value=(low + high) / 2, low=low, high=high)
    workload = WorkloadTiming(
        workload="wide",
        weight=1.0,
        candidate=_SECONDS,
        baselines=(BaselineTiming(baseline="eager", speedup=speedup, seconds=_SECONDS),),
        rounds=12,
        calls=960,
    )
    speedups = (BaselineSpeedup(baseline="eager", speedup=speedup),)
    return Timing(speedups=speedups, workloads=(workload,), cores=(1,))


@pytest.fixture(scope="session")
def make_evaluation() -> MakeEvaluation:
    """`make_evaluation(low, high, reason)`: with that interval, or failed for that reason."""

    def make(
        low: float = 1.0, high: float | None = None, reason: Reason | None = None, **changes: Any
    ) -> Evaluation:
        fields: dict[str, Any] = {
            "task": "row_softmax",
            "task_hash": "a" * 64,
            "candidate_hash": "b" * 64,
            "backend": "cpp",
            "stage": MEANINGS[reason].stage if reason else Stage.OK,
            "reason": reason,
            "timing": None if reason else _timing(low, low if high is None else high),
            "accuracy": None if reason else _ACCURACY,
            "environment": _ENVIRONMENT,
            "created_at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        }
        return Evaluation(**(fields | changes))

    return make


@pytest.fixture(scope="session")
def make_elite(make_evaluation: MakeEvaluation) -> MakeElite:
    """`make_elite(number, low, high, lines=4)`: a program of its own for each number."""

    def make(
        number: int = 0,
        low: float = 1.0,
        high: float | None = None,
        *,
        lines: int = 4,
        source: str | None = None,
        backend: str = "triton",
        **changes: Any,
    ) -> Elite:
        text = source or "\n".join(f"name_{number}_{line} = {line}" for line in range(lines))
        candidate = Candidate(backend=backend, source=text)
        return Elite(candidate=candidate, evaluation=make_evaluation(low, high, **changes))

    return make
