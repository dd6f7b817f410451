"""The rows of a table of choices: a program to be changed, and what became of changes of it.

A change was judged, or it was seen in a sweep beside all others of its parent: right on one set of
inputs, timed in one process, at a fraction of the cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Literal

from pydantic import Field

from kernel_smith.records import (
    MEANINGS,
    Candidate,
    Evaluation,
    Interval,
    Record,
    Sweep,
    Swept,
    Task,
)
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
    """A change of a parent, with what the judge said, or a sweep showed."""

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
    swept: bool = Field(default=False, description="shown by a sweep, and no verdict")

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


# What a sweep shows of a change and what the judge says, in another process and at another moment,
# are further apart than both of their intervals tell: `benchmarks/choices_table.py --report`.
SWEEP_LUCK = 0.02
_Z = 1.96

_Ends = tuple[float, float, float]
"""An interval's value, low and high end, to as many digits as mean anything."""


class SweptChange(Record):
    """A change as a sweep showed it."""

    change: str
    program: str
    reason: Reason | None = None
    gain: _Ends | None = None
    workloads: dict[str, _Ends] = Field(default_factory=dict)


class SweptChanges(Record):
    """One sweep of a parent's changes. What it did not reach is not there.

    Gains are kept as the sweep showed them, and read as far as they can be trusted.
    """

    kind: Literal["sweep"] = "sweep"
    parent: str
    task: str
    seconds: float
    changes: tuple[SweptChange, ...]

    @classmethod
    def of(cls, parent: Parent, changes: Mapping[str, str], sweep: Sweep) -> SweptChanges:
        """`changes`: by the hash of what came of each, in the order in which they were swept."""
        pairs = zip(changes.items(), sweep.swept, strict=True)
        return cls(
            parent=parent.program,
            task=parent.task,
            seconds=round(sweep.seconds, 2),
            changes=tuple(
                _swept_change(program, change, swept)
                for (program, change), swept in pairs
                if swept.reason is not None or swept.gain is not None
            ),
        )

    def rows(self) -> Iterator[Judged]:
        """Yield each change."""
        for each in self.changes:
            gains = (
                (name, _allowing_for_luck(_interval(ends))) for name, ends in each.workloads.items()
            )
            yield Judged(
                parent=self.parent,
                task=self.task,
                edit=each.change.partition(":")[0],
                change=each.change,
                program=each.program,
                stage=Stage.OK if each.reason is None else MEANINGS[each.reason].stage,
                reason=each.reason,
                gain=_allowing_for_luck(_interval(each.gain)) if each.gain is not None else None,
                workloads=tuple(WorkloadGain(workload=name, gain=gain) for name, gain in gains),
                side_by_side=True,
                swept=True,
            )


def _swept_change(program: str, change: str, swept: Swept) -> SweptChange:
    return SweptChange(
        change=change,
        program=program,
        reason=swept.reason,
        gain=_ends(swept.gain) if swept.gain is not None else None,
        workloads={name: _ends(gain) for name, gain in swept.by_workload.items()},
    )


def _ends(gain: Interval) -> _Ends:
    value, low, high = (float(f"{end:.5g}") for end in (gain.value, gain.low, gain.high))
    return value, low, high


def _interval(ends: _Ends) -> Interval:
    value, low, high = ends
    return Interval(value=value, low=low, high=high)


def _allowing_for_luck(gain: Interval) -> Interval:
    """The same, less certain: another process would have shown another gain."""
    below, above = (
        math.hypot(math.log(end / gain.value), _Z * SWEEP_LUCK) for end in (gain.low, gain.high)
    )
    return Interval(
        value=gain.value, low=gain.value * math.exp(-below), high=gain.value * math.exp(above)
    )


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
