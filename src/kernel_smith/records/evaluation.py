"""Everything measured about one candidate."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from kernel_smith.records.base import Record, VersionedRecord
from kernel_smith.records.device import (
    Ceilings,
    CompiledKernel,
    Device,
    DeviceKernel,
    NsightKernel,
    Roofline,
    Telemetry,
    TracedKernel,
)
from kernel_smith.records.verdict import MEANINGS, Reason, Stage


def _spell_out(value: Any) -> Any:
    return value if not isinstance(value, float) or math.isfinite(value) else str(value)


# JSON has no numbers for these; as words they survive the way to a file and back.
Element = Annotated[float | Literal["nan", "inf", "-inf"], BeforeValidator(_spell_out)]


class Interval(Record):
    """An estimate with its 95% confidence interval."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the interval's width, relative to the estimate."""
        return (self.high - self.low) / 2 / self.value

    @property
    def decided(self) -> bool:
        """Is one of the two faster beyond doubt?"""
        return not self.low <= 1 <= self.high

    @property
    def certain(self) -> float:
        """The part of a ratio that is beyond doubt, which is all that anybody may learn from.

        The lower end for a gain, the upper end for a loss, and 1 where it may be either.
        """
        return min(max(self.low, 1.0), self.high)

    @property
    def inverse(self) -> Interval:
        """The same ratio the other way round."""
        return Interval(value=1 / self.value, low=1 / self.high, high=1 / self.low)

    def over(self, other: Interval) -> Interval:
        """The quotient of two ratios, from the least to the most favourable reading of both."""
        return Interval(
            value=self.value / other.value, low=self.low / other.high, high=self.high / other.low
        )


class Distribution(Record):
    """Seconds per call, as the judge's clock saw them over the batches of one workload."""

    p50: float = Field(gt=0)
    p99: float = Field(gt=0)


class BaselineTiming(Record):
    """One baseline on one workload; `speedup` is its time over the candidate's."""

    baseline: str
    speedup: Interval
    seconds: Distribution
    plain_speedup: Interval | None = Field(
        default=None, description="the same for plain calls, where launching takes its time"
    )


class WorkloadTiming(Record):
    workload: str
    weight: float
    candidate: Distribution
    baselines: tuple[BaselineTiming, ...] = Field(min_length=1)
    rounds: int
    way: Literal["plain", "replay"] = Field(
        default="plain",
        description="how calls were timed: one by one, or as the replay of a captured CUDA graph",
    )
    plain_p50: float | None = Field(
        default=None, description="seconds per plain call, where replays were timed"
    )
    calls: int = Field(description="timed calls of the candidate, every one of them checked")
    inner_p50: float | None = Field(
        default=None,
        description="seconds per call by the candidate process's own clock, on a GPU by its "
        "events: a second opinion, no verdict",
    )


class BaselineSpeedup(Record):
    """The weighted geometric mean over workloads against one baseline."""

    baseline: str
    speedup: Interval


class KnownBaseline(Record):
    """What another baseline than eager reaches, by a measuring that was kept."""

    baseline: str
    ratio: float = Field(
        gt=0, description="times as fast as eager: the weighted geometric mean over workloads"
    )


class WorkloadWork(Record):
    """What one call must move and compute, whoever does it."""

    workload: str
    bytes: int = Field(ge=0, description="inputs and parameters read once, outputs written once")
    flops: int = Field(ge=0, description="of the reference's matrix products and convolutions")


class Timing(Record):
    speedups: tuple[BaselineSpeedup, ...] = Field(min_length=1)
    workloads: tuple[WorkloadTiming, ...] = Field(min_length=1)
    cores: tuple[int, ...]

    @property
    def speedup(self) -> Interval:
        """Against the first baseline, which is eager PyTorch unless another was asked for."""
        return self.speedups[0].speedup


class WorkloadGain(Record):
    """Another candidate's time over this one's."""

    workload: str
    gain: Interval


class Beside(Record):
    """Another candidate, timed in the same rounds as this one."""

    candidate_hash: str
    gain: Interval | None = Field(
        default=None, description="its time over this candidate's; null: it could not be timed"
    )
    workloads: tuple[WorkloadGain, ...] = ()
    reason: Reason | None = Field(default=None, description="why it could not be timed")
    message: str = ""


class WorstElement(Record):
    """The element with the largest error relative to what was allowed."""

    workload: str
    inputs: str = Field(description="which inputs: 'author' or a variant such as 'large'")
    output: int = Field(description="which output, counted from 0")
    index: tuple[int, ...]
    got: Element
    expected: Element
    allowed: Element = Field(description="largest absolute error accepted for this element")


class ErrorBin(Record):
    """How many elements of the worst input set had an error of at most `up_to` times the allowed
    one, and more than the bin before."""

    up_to: float | None = Field(description="null: beyond every bound, or not finite")
    elements: int


class Accuracy(Record):
    """Errors relative to the output's scale, against the fp64 oracle, where the candidate came
    closest to what is allowed, or exceeded it most: of one input set and one output."""

    candidate_error: float | None = Field(description="largest; null where not finite")
    reference_error: float = Field(description="largest error of the reference in its own dtype")
    allowed_error: float = Field(description="0 where results have to be equal, as integers")
    histogram: tuple[ErrorBin, ...] = ()
    deterministic: bool | None = None

    @property
    def excess(self) -> float:
        """The candidate's error over the allowed one."""
        if self.candidate_error is None:
            return math.inf
        return self.candidate_error / self.allowed_error if self.allowed_error else 0.0


class Finding(Record):
    """One observation of the static screen."""

    reason: Reason
    line: int
    message: str


class Diagnostic(Record):
    """One compiler message, in the coordinates of the candidate's file."""

    line: int | None
    severity: Literal["error", "warning", "note"]
    message: str


class KernelShare(Record):
    """Where the timed calls spent their time, by the module that the code came from."""

    module: str
    origin: Literal["authored", "library", "runtime", "interpreter", "kernel", "unknown"]
    share: float = Field(ge=0, le=1)
    samples: int


class Confinement(Record):
    """What the sandbox enforced, and what this machine could not offer."""

    enforced: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


class Environment(Record):
    machine: str
    processor: str
    kernel: str
    python: str
    torch: str
    compiler: str
    kernel_smith: str
    instruction_set: str = Field(default="", description="what vector code may use")
    caches: str = Field(default="", description="their sizes, of one core")


class Evaluation(VersionedRecord):
    task: str
    task_hash: str
    candidate_hash: str
    backend: str
    stage: Stage
    reason: Reason | None = None
    message: str = ""
    log: str = Field(default="", description="compiler output, traceback or last lines of stderr")
    diagnostics: tuple[Diagnostic, ...] = ()
    findings: tuple[Finding, ...] = ()
    worst: WorstElement | None = None
    accuracy: Accuracy | None = None
    timing: Timing | None = None
    interpreted: bool = Field(
        default=False,
        description="correctness alone: kernels were interpreted on the CPU, nothing was timed",
    )
    conformance: bool = Field(
        default=False,
        description="correctness alone: kernels ran on other hardware than they are for",
    )
    made_up: bool = Field(
        default=False,
        description="a simulated device's: nothing was compiled, run or measured",
    )
    kernels: tuple[KernelShare, ...] = ()
    device: Device | None = Field(default=None, description="the GPU; null on the CPU")
    compiled: tuple[CompiledKernel, ...] = Field(
        default=(), description="kernels for a GPU, as the compiler describes them"
    )
    device_kernels: tuple[DeviceKernel, ...] = ()
    rooflines: tuple[Roofline, ...] = Field(default=(), description="one per workload")
    work: tuple[WorkloadWork, ...] = Field(
        default=(), description="on the CPU, where no rooflines say it; not of large workloads"
    )
    ceilings: Ceilings | None = None
    nsight: tuple[NsightKernel, ...] = Field(
        default=(), description="the launches of one call under Nsight Compute, if asked for"
    )
    traced: tuple[TracedKernel, ...] = Field(
        default=(), description="the kernels of one call under MetaX's mcTracer, if asked for"
    )
    telemetry: Telemetry | None = None
    known_baselines: tuple[KnownBaseline, ...] = Field(
        default=(), description="of those that were timed here before, or are now"
    )
    binary: str | None = Field(
        default=None, description="the same for programs that compile to the same; null: not known"
    )
    twin: str | None = Field(
        default=None,
        description="the candidate that compiles to the same, and whose timing this is",
    )
    beside: Beside | None = Field(
        default=None, description="the candidate that it was to be timed beside, if there was one"
    )
    notes: tuple[str, ...] = ()
    confinement: Confinement = Confinement()
    environment: Environment
    seconds: dict[str, float] = Field(
        default_factory=dict,
        description="where the time went, by step; 'calls before timing' and 'compiler alone' are "
        "parts of other steps",
    )
    created_at: datetime

    @model_validator(mode="after")
    def _stage_and_evidence_agree(self) -> Self:
        if self.stage is Stage.OK:
            if self.reason is not None:
                raise ValueError("an ok evaluation carries no reason")
            if self.accuracy is None or (self.timing is None) != self.untimed:
                raise ValueError("an ok evaluation carries accuracy, and timing unless interpreted")
            return self
        if self.reason is None:
            raise ValueError(f"stage {self.stage} needs a reason")
        if MEANINGS[self.reason].stage is not self.stage:
            raise ValueError(f"reason {self.reason} does not belong to stage {self.stage}")
        if self.timing is not None and self.stage is not Stage.UNSTABLE:
            raise ValueError(f"stage {self.stage} must not carry a timing: it earned none")
        return self

    @property
    def ok(self) -> bool:
        return self.stage is Stage.OK

    @property
    def untimed(self) -> bool:
        """Was correctness all that could be learned?"""
        return self.interpreted or self.conformance
