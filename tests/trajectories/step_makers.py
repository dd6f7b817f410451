"""Made-up evaluations, steps and runs, with just the figures that a test is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kernel_smith.records import (
    Accuracy,
    BaselineSpeedup,
    BaselineTiming,
    Budget,
    Candidate,
    Conversation,
    Distribution,
    Elite,
    Environment,
    Evaluation,
    Event,
    Interval,
    Message,
    Proposal,
    Reason,
    Remeasured,
    RunConfig,
    RunStarted,
    Stage,
    StepEvaluated,
    StepGain,
    StepProposed,
    Task,
    Timing,
    TrainingStep,
    WorkloadGain,
    WorkloadTiming,
)
from kernel_smith.store import Store

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TASK = Task(name="row_softmax", family="softmax", source="class Model: ...")
CONFIG = RunConfig(backend="cpp", proposers={"model": 1.0}, budget=Budget(evaluations=100))
ENVIRONMENT = Environment(
    machine="aarch64",
    processor="a processor, 2 cores",
    kernel="Linux 6.1",
    python="3.11.7",
    torch="2.6.0",
    compiler="g++ 12",
    kernel_smith="0.1.0",
)


def program(number: int) -> Candidate:
    """Programs that differ by more than a number."""
    return Candidate(source=f"class ModelNew:\n    def run_{number}(self):\n        return self\n")


def around(value: float, width: float = 0.01) -> Interval:
    return Interval(value=value, low=value * (1 - width), high=value * (1 + width))


def timing(speedups: Mapping[str, float], *, p99: float = 2e-5, **changes: Any) -> Timing:
    """One workload for each name, so many times as fast as eager."""
    workloads = [
        WorkloadTiming(
            **{
                "workload": name,
                "weight": 1.0,
                "candidate": Distribution(p50=1e-5 / value, p99=p99),
                "baselines": (
                    BaselineTiming(
                        baseline="eager",
                        speedup=around(value),
                        seconds=Distribution(p50=1e-5, p99=3e-5),
                    ),
                ),
                "rounds": 12,
                "calls": 960,
                **changes,
            }
        )
        for name, value in speedups.items()
    ]
    overall = around(sum(speedups.values()) / len(speedups))
    return Timing(
        speedups=(BaselineSpeedup(baseline="eager", speedup=overall),),
        workloads=tuple(workloads),
        cores=(1,),
    )


def evaluation(
    candidate: Candidate, speedup: float | Mapping[str, float] | None, **changes: Any
) -> Evaluation:
    """Right and so many times as fast, or with None: wrong."""
    speedups = {"wide": speedup} if isinstance(speedup, float | int) else speedup
    fields: dict[str, Any] = {
        "task": TASK.name,
        "task_hash": TASK.content_hash,
        "candidate_hash": candidate.content_hash,
        "backend": candidate.backend,
        "stage": Stage.OK if speedups else Stage.INCORRECT,
        "reason": None if speedups else Reason.WRONG_VALUES,
        "accuracy": Accuracy(candidate_error=1e-7, reference_error=1e-7, allowed_error=1e-5),
        "timing": timing(speedups) if speedups else None,
        "environment": ENVIRONMENT,
        "created_at": AT,
    }
    return Evaluation(**(fields | changes))


def failure(candidate: Candidate, reason: Reason, stage: Stage) -> Evaluation:
    return evaluation(candidate, None, reason=reason, stage=stage)


def elite(number: int, speedup: float | None, **changes: Any) -> Elite:
    return Elite(
        candidate=program(number), evaluation=evaluation(program(number), speedup, **changes)
    )


def gain(value: float, *, width: float = 0.01, p99: float | None = 1.0, **by: float) -> StepGain:
    workloads = (WorkloadGain(workload=name, gain=around(each, 0.01)) for name, each in by.items())
    return StepGain(
        overall=around(value, width),
        workloads=tuple(workloads) or (WorkloadGain(workload="wide", gain=around(value, width)),),
        p99=p99,
        side_by_side=False,
        measured_again=True,
    )


def later_step(**changes: Any) -> TrainingStep:
    """A step that no filter of any preset refuses, apart from the changes."""
    fields: dict[str, Any] = {
        "store": "runs.sqlite",
        "run": "run-1",
        "step": 2,
        "task": TASK,
        "proposer": "model",
        "parent": elite(1, 1.2),
        "child": elite(2, 1.5),
        "grandparent": program(0),
        "gain": gain(1.25),
        "gain_over_grandparent": gain(1.5),
        "depth": 2,
        "was_best": True,
    }
    return TrainingStep(**(fields | changes))


def first_step(**changes: Any) -> TrainingStep:
    alone = {"parent": None, "grandparent": None, "gain_over_grandparent": None, "depth": 0}
    return later_step(**(alone | {"step": 0, "gain": gain(1.5)} | changes))


def said(*contents: str) -> Conversation:
    messages = tuple(Message(role="user", content=content) for content in contents)
    return Conversation(model="a-model", messages=messages, response="Unroll.")


def proposed(step: int, parent: int | None = None, **changes: Any) -> StepProposed:
    """Step N proposes program N."""
    fields: dict[str, Any] = {
        "candidate": program(step),
        "proposer": "model",
        "parents": () if parent is None else (program(parent).content_hash,),
        "summary": f"change {step}",
    }
    return StepProposed(step=step, proposal=Proposal(**(fields | changes)), at=AT)


def evaluated(step: int, speedup: float | None, **changes: Any) -> StepEvaluated:
    made = evaluation(program(step), speedup, **changes)
    return StepEvaluated(step=step, evaluation=made, seconds=1.0, at=AT)


def remeasured(number: int, speedup: float | None, **changes: Any) -> Remeasured:
    made = evaluation(program(number), speedup, **changes)
    return Remeasured(candidate=program(number).content_hash, evaluation=made, at=AT)


def write_run(path: Path, events: Iterable[Event], run: str = "run-1", task: Task = TASK) -> Path:
    with Store.open(path, create=True) as store:
        store.append(run, RunStarted(run=run, task=task, config=CONFIG, at=AT))
        for event in events:
            store.append(run, event)
    return path


def chain(*speedups: float | None) -> list[Event]:
    """Each program is made from the one before it."""
    events: list[Event] = []
    for step, speedup in enumerate(speedups):
        events += [proposed(step, step - 1 if step else None), evaluated(step, speedup)]
    return events
