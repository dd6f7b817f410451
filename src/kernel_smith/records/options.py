"""What the caller of an evaluation may choose. The verdict's rules are not among the choices."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kernel_smith.records.base import Record
from kernel_smith.records.task import Admission

Baseline = Literal["eager", "compile", "max-autotune", "graph"]


class Sampling(Record):
    """How long to measure. Sampling stops early once the interval is as tight as `target`,
    or as 2% of the difference that it shows (in logarithms: 1.4% for twice as fast)."""

    target: float = Field(
        default=0.01,
        gt=0,
        description="half-width, from sampling alone, to stop at; wider for large differences",
    )
    unstable_above: float = Field(
        default=0.05,
        gt=0,
        description="half-width beyond which the result is called unstable, unless the interval "
        "lies on one side of 1",
    )
    min_rounds: int = Field(default=10, ge=2)
    max_rounds: int = Field(default=200, ge=2)
    max_seconds: float = Field(default=4.0, gt=0, description="per workload")


class Limits(Record):
    """What a candidate process may use."""

    load_seconds: float = Field(default=20.0, gt=0)
    call_seconds: float = Field(default=10.0, gt=0)
    compile_seconds: float = Field(default=60.0, gt=0)
    memory_bytes: int = Field(default=4 << 30, gt=0)
    scratch_bytes: int = Field(default=64 << 20, gt=0)
    processes: int = Field(default=64, gt=0, description="threads count too")


class Options(Record):
    seeds: int = Field(default=3, ge=1, description="secret seeds per workload")
    baselines: tuple[Baseline, ...] = Field(default=("eager",), min_length=1)
    screen: bool = Field(default=True, description="False: rely on the run-time defences alone")
    interpret: bool = Field(
        default=False, description="interpret kernels for a GPU on the CPU, even where one is"
    )
    profile: bool = Field(
        default=True,
        description="list the kernels that ran on a GPU? Starting its profiler takes seconds",
    )
    time_twins: bool = Field(
        default=True,
        description="time at length also what compiles to the same as one that was timed before?",
    )
    admit: tuple[Admission, ...] = ()
    sampling: Sampling = Sampling()
    limits: Limits = Limits()
    cores: tuple[int, ...] | None = Field(
        default=None, description="cores for timed work; default: all but the first"
    )
