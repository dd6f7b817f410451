"""The rows of a table of choices: a program to be changed, and a change of one as it was judged."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from kernel_smith.records import Candidate, Evaluation, Interval, Record, Task
from kernel_smith.records.evaluation import WorkloadGain
from kernel_smith.records.training import StepGain
from kernel_smith.records.verdict import Reason, Stage

MOST_GAIN = 4.0  # what is more is worth no more, so that one lucky task does not decide


class Parent(Record):
    """A program that changes were judged at."""

    kind: Literal["parent"] = "parent"
    program: str = Field(description="its content hash")
    task: str
    family: str
    backend: str
    source: str
    machine: str = Field(description="the architecture that it was timed on")
    processor: str
    cores: int | None = Field(description="that were timed")
    speedup: Interval = Field(description="over eager")
    workloads: tuple[str, ...] = Field(description="those that were timed")


class Judged(Record):
    """A change of a parent, with what the judge said."""

    kind: Literal["judged"] = "judged"
    parent: str
    task: str
    edit: str
    change: str = Field(description="the edit and its site, as the mutator names them")
    program: str = Field(description="the content hash of what came of it")
    stage: Stage
    reason: Reason | None = None
    gain: Interval | None = Field(default=None, description="over the parent; null: not timed")
    workloads: tuple[WorkloadGain, ...] = ()
    side_by_side: bool = False

    @property
    def is_certain(self) -> bool:
        """Is it faster or slower beyond doubt, or out of the question?"""
        return self.gain.decided if self.gain is not None else self.stage is not Stage.UNSTABLE

    @property
    def reward(self) -> float:
        """The logarithm of what was surely gained; what lost or failed is not kept, and worth 0."""
        if self.gain is None:
            return 0.0
        return math.log(min(max(self.gain.certain, 1.0), MOST_GAIN))


def parent_row(task: Task, candidate: Candidate, evaluation: Evaluation) -> Parent | None:
    """None for a program that was never timed: what it became cannot be compared with it."""
    timing = evaluation.timing
    if timing is None or not evaluation.ok:
        return None
    return Parent(
        program=candidate.content_hash,
        task=task.name,
        family=task.family,
        backend=candidate.backend,
        source=candidate.source,
        machine=evaluation.environment.machine,
        processor=evaluation.environment.processor,
        cores=len(timing.cores),
        speedup=timing.speedup,
        workloads=tuple(each.workload for each in timing.workloads),
    )


def judged_row(
    parent: Parent, change: str, evaluation: Evaluation, gain: StepGain | None
) -> Judged:
    """`change`: the edit and its site, as the mutator sums it up."""
    return Judged(
        parent=parent.program,
        task=parent.task,
        edit=change.partition(":")[0],
        change=change,
        program=evaluation.candidate_hash,
        stage=evaluation.stage,
        reason=evaluation.reason,
        gain=gain.overall if gain is not None else None,
        workloads=gain.workloads if gain is not None else (),
        side_by_side=gain is not None and gain.side_by_side,
    )
