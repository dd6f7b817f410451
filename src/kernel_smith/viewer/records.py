"""What the pages are drawn from: plain data, the same in a file and over HTTP.

Steps come as columns, so that ten thousand of them stay small. What is long (programs,
evaluations, prompts) comes in portions of `PORTION` steps, when a page asks for it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from kernel_smith.bench.compare import Comparison
from kernel_smith.records import (
    BaselineSpeedup,
    Budget,
    Ceilings,
    Interval,
    Record,
    Usage,
    WorkloadTiming,
)
from kernel_smith.records.bench import Arm, BenchRow, Board, Stamp

PORTION = 32
"""Steps whose details are fetched together."""


class RunCost(Record):
    """What a run took."""

    device_seconds: float
    usage: Usage


class RunCard(Record):
    """A run in the list of runs."""

    id: str
    task: str
    backend: str
    state: Literal["running", "ended", "interrupted"]
    evaluations: int
    best: Interval | None
    confirmed: bool
    started: datetime
    last: datetime
    cost: RunCost | None = Field(description="null: its events were not read yet")


class StepColumns(Record):
    """One entry per step. Names are numbers into `RunPage.names`; null where there is nothing."""

    step: list[int]
    proposed: list[float] = Field(description="seconds after the start of the run")
    ended: list[float | None]
    seconds: list[float | None] = Field(description="spent evaluating it")
    proposer: list[int]
    model: list[int | None]
    parent: list[int | None] = Field(description="the position of the step that was changed")
    stage: list[int | None]
    reason: list[int | None]
    value: list[float | None] = Field(description="the speedup by the last measuring")
    low: list[float | None]
    high: list[float | None]
    p50: list[float | None] = Field(description="seconds per call, of the first workload")
    p99: list[float | None]
    island: list[int | str | None]
    cell: list[int | None]
    twin: list[bool] = Field(description="does it compile to the same as an earlier one?")
    summary: list[str]
    candidate: list[str]


class Names(Record):
    proposers: tuple[str, ...]
    models: tuple[str, ...]
    stages: tuple[str, ...]
    reasons: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...] = Field(description="one bin per feature")


class FeatureAxis(Record):
    """One dimension of the archive."""

    name: str
    description: str
    bins: tuple[str, ...]


class CurvePoint(Record):
    """The best so far, from this evaluation on."""

    evaluations: int
    at: float
    best: Interval
    step: int


class Gain(Record):
    """A step that took the lead, and still had it when it was measured again."""

    step: int
    evaluations: int
    at: float
    speedup: Interval
    before: float | None = Field(description="the best speedup before; null: there was none")
    beside: Interval | None = Field(
        default=None, description="its gain over the best before, timed side by side with it"
    )


class Dropped(Record):
    proposer: str
    why: str
    count: int


class Span(Record):
    """When something was evaluated."""

    begin: float
    end: float
    what: Literal["step", "again", "full"]


class RooflinePoint(Record):
    position: int
    workload: str
    intensity: float | None = Field(description="flops per byte; null: it counts no flops")
    flops_per_second: float
    bytes_per_second: float
    bound: str
    share: float
    precision: str = Field(description="whose ceiling counts")


class RunPage(Record):
    """Everything about a run but its programs and evaluations."""

    id: str
    sequence: int = Field(description="the number of the last event that is in it")
    task: str
    description: str
    precision: str
    backend: str
    method: str
    state: Literal["running", "ended", "interrupted"]
    made_up: bool = Field(description="were evaluations made up by simulated devices?")
    started: datetime
    seconds: float = Field(description="from the first event to the last")
    ended: str | None = Field(description="why")
    unconfirmed: str
    resumed: int
    budget: Budget
    lanes: int
    machine: str = Field(description="where it was measured; empty if nothing was")
    funnel: dict[str, int]
    dropped: tuple[Dropped, ...]
    usage: Usage
    model_usage: dict[str, Usage]
    names: Names
    axes: tuple[FeatureAxis, ...]
    steps: StepColumns
    best: int | None = Field(description="the position of the best step")
    shown: tuple[BaselineSpeedup, ...] = Field(description="what it showed at full length")
    confirmed: bool
    workloads: tuple[WorkloadTiming, ...] = Field(description="the best's, by its last measuring")
    held: tuple[int, ...] = Field(description="positions of all that were the best")
    curve: tuple[CurvePoint, ...]
    gains: tuple[Gain, ...]
    spans: tuple[Span, ...]
    rooflines: tuple[RooflinePoint, ...]
    ceilings: Ceilings | None
    commands: dict[str, str] = Field(description="what to type: evaluate, best, resume, ...")


class Measured(Record):
    """One evaluation of a step: as data, and in words."""

    kind: Literal["step", "again", "full"]
    at: datetime
    words: str
    evaluation: dict[str, Any]


class StepPage(Record):
    """What is long about one step."""

    step: int
    name: str
    source: str
    parents: tuple[str, ...]
    details: dict[str, Any]
    messages: tuple[tuple[str, str], ...] = Field(description="role and text")
    response: str
    usage: Usage | None
    measured: tuple[Measured, ...]


class StepPortion(Record):
    steps: dict[int, StepPage] = Field(description="by position")


class BenchPage(Record):
    """One benchmark result."""

    id: str
    stamp: Stamp
    places: tuple[str, ...]
    arms: tuple[Arm, ...]
    rows: tuple[BenchRow, ...]
    boards: tuple[Board, ...]
    comparisons: tuple[Comparison, ...]
    verify: str = Field(description="the command that judges its programs again")


class Winner(Record):
    source: str
    words: str


class WinnerPortion(Record):
    winners: dict[int, Winner] = Field(description="by the row's position")


class Contents(Record):
    """What there is to see."""

    version: str
    live: bool
    runs: tuple[RunCard, ...]
    results: tuple[str, ...]
