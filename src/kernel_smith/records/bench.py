"""What a benchmark keeps: one row per problem and arm, and what stands beside every figure."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from kernel_smith.records.base import Record, VersionedRecord
from kernel_smith.records.device import Device
from kernel_smith.records.evaluation import Environment, Interval
from kernel_smith.records.options import Options
from kernel_smith.records.step import Budget, Unfit
from kernel_smith.records.task import Precision
from kernel_smith.records.verdict import Reason

Status = Literal["correct", "incorrect", "failed", "unfinished"] | Unfit
"""How a problem ended. Incorrect: no program for it was right. Failed: a defect of the evaluator.
Unfinished: the budget of the whole was spent, or somebody stopped it."""

Refused = Literal["count", "leave-out"]
"""What becomes of problems that cannot be judged: they count as not solved, or not at all."""


class Cost(Record):
    evaluations: int = 0
    steps: int = Field(default=0, description="first programs and answers, whatever came of them")
    tokens: int = 0
    dollars: float = 0.0
    device_seconds: float = Field(default=0.0, description="spent evaluating, over all lanes")
    seconds: float = Field(default=0.0, description="while somebody worked on the problem")

    def __add__(self, other: Cost) -> Cost:
        fields = type(self).model_fields
        return Cost(**{name: getattr(self, name) + getattr(other, name) for name in fields})


class CurvePoint(Record):
    """The best so far, from this step on; steps are counted from 1."""

    step: int = Field(ge=1)
    speedup: float = Field(description="over eager, the lower end of its interval")


class CaughtProgram(Record):
    """A program that was refused for what it does, and not for an error in it."""

    program: str
    reason: Reason
    message: str = ""


class BenchRow(Record):
    """What one arm made of one problem."""

    arm: str
    problem: str
    suite: str
    level: str
    category: str
    precision: Precision
    task_hash: str = Field(description="empty where the file could not be read")
    status: Status
    why: str = Field(default="", description="why it ended so, in words")
    run: str | None = Field(default=None, description="in the store; null: none was begun")
    winner: str | None = Field(default=None, description="the winning program's hash")
    speedups: dict[str, Interval] = Field(
        default_factory=dict, description="the winner's, by baseline, as it was measured last"
    )
    at_length: bool = Field(
        default=False, description="was that a measuring at full length, which chose nobody?"
    )
    limit_share: float | None = Field(
        default=None, description="of what the device can do at best; of several workloads the mean"
    )
    cost: Cost = Cost()
    curve: tuple[CurvePoint, ...] = ()
    ends: dict[str, int] = Field(
        default_factory=dict, description="how programs ended: a stage or stage/reason -> how many"
    )
    caught: tuple[CaughtProgram, ...] = ()
    made_up: bool = Field(default=False, description="by simulated devices: nothing was measured")

    @property
    def key(self) -> tuple[str, str]:
        """What rows of two arms, or of two results, are paired by."""
        return self.problem, self.precision.value


class Arm(Record):
    """One way to solve the problems: a method with its workers and its budget per problem."""

    name: str
    method: str
    backend: str
    proposers: dict[str, float]
    models: tuple[str, ...] = ()
    budget: Budget
    options: Options
    confirmation: Options
    told: bool = Field(default=False, description="programs of a folder, and nobody is asked")


class Place(Record):
    """Hardware and versions that some of the rows were measured with."""

    environment: Environment
    device: Device | None = None


class Stamp(Record):
    """What stands beside every figure."""

    places: tuple[Place, ...] = Field(description="more than one: rows are not all comparable")
    kernel_smith: str
    commit: str | None = Field(default=None, description="of kernel-smith, where it is a checkout")
    modified: bool = Field(default=False, description="was it changed since that commit?")
    suites: dict[str, str | None] = Field(
        description="as they were named -> the commit that they are at, where they are checkouts"
    )
    selection: dict[str, Any] = Field(
        default_factory=dict, description="which of their problems: levels, globs, a sample's seed"
    )
    refused: Refused
    seed: int
    engine: str | None = None
    at_once: int
    lanes: int
    created_at: datetime


class BenchResult(VersionedRecord):
    stamp: Stamp
    arms: tuple[Arm, ...]
    rows: tuple[BenchRow, ...]


class Against(Record):
    """How the winners compare with one baseline."""

    faster: Interval = Field(description="share of all problems: significantly faster")
    geometric_mean: Interval | None = Field(description="of the correct ones that were timed")


class Scores(Record):
    """What some rows come to. Intervals are of 95%; null where there is nothing to go by."""

    problems: int
    unfit: int = Field(description="of them, those that cannot be judged")
    solved: int
    correct: Interval | None
    fast: dict[str, Interval] = Field(description="p -> share that is correct and over p times")
    amsr: Interval | None = Field(description="mean speedup over eager; below 1 counts 0")
    geometric_mean: Interval | None
    against: dict[str, Against]
    limit_share: float | None = Field(description="the median of those where it is known")
    cost: Cost


class Board(Record):
    """The scores of one arm at one precision."""

    arm: str
    precision: Precision
    average: Scores = Field(description="of the levels, unweighted")
    levels: dict[str, Scores]
    categories: dict[str, Scores]
    made_up: bool = False
