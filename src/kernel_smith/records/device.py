"""What a GPU is, what it can do at best, and what it did while a candidate was timed."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from kernel_smith.records.base import Record, VersionedRecord


class Device(Record):
    """The GPU that measurements were taken on."""

    name: str
    kind: Literal["cuda"] = "cuda"
    capability: str = Field(pattern=r"^\d+\.\d+$", description="of its instructions, e.g. 9.0")
    memory_bytes: int
    multiprocessors: int
    l2_bytes: int
    driver: str
    runtime: str = Field(description="the CUDA version that torch was built for")
    sm_clock_max_mhz: int | None = Field(default=None, description="null: the driver did not say")


class Telemetry(Record):
    """What the device did while it was timed. Without samples, `missing` says why."""

    samples: int = 0
    sm_clock_mhz: tuple[int, int] | None = Field(default=None, description="lowest and highest")
    memory_clock_mhz: tuple[int, int] | None = Field(default=None, description="the same")
    power_watts: float | None = Field(default=None, description="highest")
    temperature_c: int | None = Field(default=None, description="highest")
    throttled: tuple[str, ...] = Field(
        default=(), description="what held the clock down, other than idleness and clock settings"
    )
    missing: str = ""


class Ceilings(VersionedRecord):
    """The limits of a device, as measured on it: not a datasheet's.

    Copies are larger than every cache, and products are of random numbers. Work that stays in the
    L2 cache, or on zeros (which take less power), can be somewhat faster.
    """

    device: Device
    copy_bytes_per_second: float = Field(gt=0, description="bytes read and bytes written")
    flops_per_second: dict[str, float] = Field(
        description="of large matrix products, by precision; int8 counts operations"
    )
    launch_seconds: float = Field(gt=0, description="per empty kernel of a replayed graph")
    versions: dict[str, str] = Field(default_factory=dict)
    measured_at: datetime


class Roofline(Record):
    """How far one workload is from what bounds it.

    `bytes` and `flops` are the reference's. A kernel that does with less than the reference, by
    leaving out what a mask hides for example, can honestly have a share above 1.
    """

    workload: str
    bytes: int = Field(ge=0, description="inputs and parameters read once, outputs written once")
    flops: int = Field(ge=0, description="of the reference's matrix products and convolutions")
    precision: str = Field(description="whose ceiling `flops` are compared with")
    launches: float = Field(ge=0, description="kernels per call")
    seconds: float = Field(gt=0, description="per call")
    bytes_per_second: float
    flops_per_second: float
    bound: Literal["memory", "compute", "launch"]
    share: float = Field(ge=0, description="of the limit that bounds it")
    floor_seconds: float = Field(ge=0, description="bytes or flops at their ceiling, the longer")


class DeviceKernel(Record):
    """One kernel that ran on the device, with one shape of its grid.

    It is observed in the candidate's own process: it explains a time, and proves nothing.
    """

    name: str
    origin: Literal["authored", "library", "unknown"] = Field(
        description="library: launched by an operator of torch; unknown: not seen, as in a graph"
    )
    launches: float = Field(ge=0, description="per call")
    share: float = Field(ge=0, le=1, description="of the time of all kernels")
    seconds: float = Field(ge=0, description="per call")
    registers: int | None = Field(default=None, description="per thread")
    spills: int | None = Field(default=None, description="registers moved to memory, per thread")
    shared_bytes: int | None = Field(default=None, description="shared memory per block")
    occupancy: float | None = Field(
        default=None, ge=0, le=1, description="estimated share of a multiprocessor's warps in use"
    )
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()


class CompiledKernel(Record):
    """What the compiler said of a kernel, which the judge has run. It may never have been launched,
    or was compiled several times, with other constants."""

    name: str
    registers: int | None = Field(default=None, description="per thread")
    spill_bytes: int | None = Field(default=None, description="moved to memory, per thread")
    shared_bytes: int | None = Field(
        default=None, description="shared memory per block, beside what a launch asks for"
    )


class NsightKernel(Record):
    """One launch as Nsight Compute saw it. It replays kernels one by one, with a cold cache."""

    name: str
    seconds: float | None = Field(default=None, ge=0)
    memory_share: float | None = Field(
        default=None, ge=0, description="of the memory's peak throughput"
    )
    compute_share: float | None = Field(
        default=None, ge=0, description="of the multiprocessors' peak throughput"
    )
    occupancy: float | None = Field(default=None, ge=0, description="share of warps in use")
    l2_hits: float | None = Field(default=None, ge=0, description="share of accesses")
    bytes_read: int | None = Field(default=None, ge=0, description="from the device's memory")
    bytes_written: int | None = Field(default=None, ge=0)
    waits_for: str | None = Field(default=None, description="what its warps wait for most")


class TracedKernel(Record):
    """All launches of one kernel as mcTracer saw them."""

    name: str
    launches: int = Field(ge=1, description="in one call")
    share: float = Field(ge=0, le=1, description="of the time of all kernels")
