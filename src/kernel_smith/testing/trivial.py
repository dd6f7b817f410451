"""An engine that evaluates nothing: it makes up an evaluation at once, or after a while.

For tests and benchmarks of what happens around evaluations.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
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
    Options,
    Reason,
    Stage,
    Task,
    Timing,
    WorkloadTiming,
)

_ENVIRONMENT = Environment(
    machine="none",
    processor="none",
    kernel="none",
    python="none",
    torch="none",
    compiler="none",
    kernel_smith="none",
)
_SECONDS = Distribution(p50=1e-6, p99=1e-6)

Judgement = Callable[[Candidate], float | Reason]
"""The speedup of a candidate, or why it has none."""


def made_up(
    task: Task, candidate: Candidate, outcome: float | Reason, *, half_width: float = 0.01
) -> Evaluation:
    """A valid evaluation with this outcome."""
    common: dict[str, Any] = {
        "task": task.name,
        "task_hash": task.content_hash,
        "candidate_hash": candidate.content_hash,
        "backend": candidate.backend,
        "environment": _ENVIRONMENT,
        "created_at": datetime.now(UTC),
    }
    if isinstance(outcome, Reason):
        return Evaluation(stage=MEANINGS[outcome].stage, reason=outcome, **common)
    speedup = Interval(
        value=outcome, low=outcome * (1 - half_width), high=outcome * (1 + half_width)
    )
    workload = WorkloadTiming(
        workload=task.workloads[0].name,
        weight=1.0,
        candidate=_SECONDS,
        baselines=(BaselineTiming(baseline="eager", speedup=speedup, seconds=_SECONDS),),
        rounds=1,
        calls=1,
    )
    timing = Timing(
        speedups=(BaselineSpeedup(baseline="eager", speedup=speedup),),
        workloads=(workload,),
        cores=(0,),
    )
    accuracy = Accuracy(candidate_error=0.0, reference_error=0.0, allowed_error=1e-5)
    return Evaluation(stage=Stage.OK, timing=timing, accuracy=accuracy, **common)


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


class TrivialEngine:
    """Evaluates by a function; remembers what it was asked, and how long it was busy."""

    def __init__(self, judge: Judgement, *, seconds: float = 0.0, lanes: int = 1) -> None:
        self._judge = judge
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(lanes)
        self._lock = threading.Lock()
        self.evaluated: list[str] = []
        self.busy_seconds = 0.0

    def submit(
        self,
        task: Task,
        candidate: Candidate,
        options: Options | None = None,
        *,
        beside: Candidate | None = None,
    ) -> Future[Evaluation]:
        if self._seconds:
            return self._threads.submit(self._evaluate, task, candidate, beside)
        future: Future[Evaluation] = Future()
        future.set_result(self._evaluate(task, candidate, beside))
        return future

    def _evaluate(
        self, task: Task, candidate: Candidate, beside: Candidate | None = None
    ) -> Evaluation:
        if self._seconds:
            time.sleep(self._seconds)
        with self._lock:
            self.evaluated.append(candidate.content_hash)
            self.busy_seconds += self._seconds
        judged = made_up(task, candidate, self._judge(candidate))
        if beside is None:
            return judged
        return made_up_beside(judged, made_up(task, beside, self._judge(beside)))
