"""Events of a made-up run, as alike and as different as those of a real one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from kernel_smith.records import (
    Accuracy,
    BaselineSpeedup,
    BaselineTiming,
    Budget,
    Candidate,
    Conversation,
    Distribution,
    Environment,
    Evaluation,
    Event,
    Interval,
    Message,
    Proposal,
    Reason,
    RunConfig,
    RunStarted,
    Stage,
    StepEvaluated,
    StepProposed,
    Task,
    Timing,
    Usage,
    WorkloadTiming,
)

BEGIN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TASK = Task(name="row_softmax", source="class Model: ...")
CONFIG = RunConfig(backend="cpp", proposers={"tuner": 1.0}, budget=Budget(evaluations=100))


def started(run: str = "run-1", **changes: Any) -> RunStarted:
    return RunStarted(**({"run": run, "task": TASK, "config": CONFIG, "at": BEGIN} | changes))


def candidate(number: int) -> Candidate:
    body = "\n".join(f"    y[{row}] = x[{row}] * {row}" for row in range(20))
    return Candidate(source=f"class ModelNew:  # variant {number}\n{body}\n    unroll = {number}\n")


def proposed(step: int, parent: Candidate | None = None, **changes: Any) -> StepProposed:
    fields: dict[str, Any] = {
        "candidate": candidate(step),
        "proposer": "tuner" if step else "start",
        "parents": (parent.content_hash,) if parent else (),
        "summary": f"unroll {step} times",
        "details": {"unroll": step},
    }
    at = BEGIN + timedelta(seconds=step)
    return StepProposed(
        step=step, label={"island": step % 3}, proposal=Proposal(**(fields | changes)), at=at
    )


def conversation(step: int, system: str = "You write kernels. " * 200) -> Conversation:
    messages = (
        Message(role="system", content=system),
        Message(role="user", content=f"Make program {step} faster. " + "It is slow. " * 50),
    )
    usage = Usage(prompt_tokens=1000, cached_tokens=800, completion_tokens=200, requests=1)
    answer = f"Unroll {step} times."
    return Conversation(model="a-model", messages=messages, response=answer, usage=usage)


def evaluation(program: Candidate, speedup: float | None, **changes: Any) -> Evaluation:
    """Right and this many times as fast, or with None: wrong."""
    fields: dict[str, Any] = {
        "task": TASK.name,
        "task_hash": TASK.content_hash,
        "candidate_hash": program.content_hash,
        "backend": program.backend,
        "stage": Stage.OK if speedup else Stage.INCORRECT,
        "reason": None if speedup else Reason.WRONG_VALUES,
        "accuracy": Accuracy(candidate_error=1e-7, reference_error=1e-7, allowed_error=1e-5),
        "timing": timing(speedup) if speedup else None,
        "environment": Environment(
            machine="aarch64",
            processor="a processor, 2 cores",
            kernel="Linux 6.1",
            python="3.11.7",
            torch="2.6.0",
            compiler="g++ 12",
            kernel_smith="0.1.0",
        ),
        "created_at": BEGIN,
    }
    return Evaluation(**(fields | changes))


def timing(value: float, width: float = 0.01) -> Timing:
    interval = Interval(value=value, low=value * (1 - width), high=value * (1 + width))
    own, eager = Distribution(p50=1e-5 / value, p99=2e-5), Distribution(p50=1e-5, p99=2e-5)
    workload = WorkloadTiming(
        workload="wide",
        weight=1.0,
        candidate=own,
        baselines=(BaselineTiming(baseline="eager", speedup=interval, seconds=eager),),
        rounds=12,
        calls=960,
    )
    speedups = (BaselineSpeedup(baseline="eager", speedup=interval),)
    return Timing(speedups=speedups, workloads=(workload,), cores=(1,))


def evaluated(step: int, speedup: float | None) -> StepEvaluated:
    at = BEGIN + timedelta(seconds=step + 0.5)
    made = evaluation(candidate(step), speedup)
    return StepEvaluated(step=step, evaluation=made, seconds=1.0, at=at)


def steps(count: int, *, talking: bool = False) -> Iterator[Event]:
    """`count` pairs of a proposal and its evaluation; each step improves on the one before."""
    for step in range(count):
        said = {"conversation": conversation(step)} if talking else {}
        yield proposed(step, candidate(step - 1) if step else None, **said)
        yield evaluated(step, 1 + step / 10)
