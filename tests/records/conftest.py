"""Evaluations to look at: complete ones for every stage."""

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
    Distribution,
    Environment,
    ErrorBin,
    Evaluation,
    Interval,
    Reason,
    Stage,
    Timing,
    WorkloadTiming,
)

MakeEvaluation = Callable[..., Evaluation]

_SPEEDUP = Interval(value=1.52, low=1.49, high=1.55)
_ENVIRONMENT = Environment(
    machine="aarch64",
    processor="a processor, 2 cores",
    kernel="Linux 6.1",
    python="3.11.7",
    torch="2.6.0",
    compiler="g++ 12",
    kernel_smith="0.1.0",
)


@pytest.fixture(scope="session")
def timing() -> Timing:
    workload = WorkloadTiming(
        workload="wide",
        weight=1.0,
        candidate=Distribution(p50=2e-5, p99=3e-5),
        baselines=(
            BaselineTiming(
                baseline="eager", speedup=_SPEEDUP, seconds=Distribution(p50=3.04e-5, p99=4e-5)
            ),
        ),
        rounds=12,
        calls=960,
        inner_p50=1.9e-5,
    )
    speedups = (BaselineSpeedup(baseline="eager", speedup=_SPEEDUP),)
    return Timing(speedups=speedups, workloads=(workload,), cores=(1,))


@pytest.fixture(scope="session")
def accuracy() -> Accuracy:
    return Accuracy(
        candidate_error=2e-7,
        reference_error=1e-7,
        allowed_error=4e-5,
        histogram=(ErrorBin(up_to=1.0, elements=99), ErrorBin(up_to=None, elements=1)),
        deterministic=True,
    )


@pytest.fixture(scope="session")
def make_evaluation(timing: Timing, accuracy: Accuracy) -> MakeEvaluation:
    """`make_evaluation(reason, **changes)`: with the evidence that its stage carries."""

    def make(reason: Reason | None = None, **changes: Any) -> Evaluation:
        stage = MEANINGS[reason].stage if reason else Stage.OK
        measured = stage in (Stage.OK, Stage.UNSTABLE)
        fields: dict[str, Any] = {
            "task": "row_softmax",
            "task_hash": "a" * 64,
            "candidate_hash": "b" * 64,
            "backend": "cpp",
            "stage": stage,
            "reason": reason,
            "timing": timing if measured else None,
            "accuracy": accuracy if measured else None,
            "environment": _ENVIRONMENT,
            "created_at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        }
        return Evaluation(**(fields | changes))

    return make
