"""What compiling a candidate's kernels, without running them, has shown."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from pydantic import Field, model_validator

from kernel_smith.records.base import Record, VersionedRecord
from kernel_smith.records.verdict import MEANINGS, Reason, Stage

Constant = bool | int | float | str | None


class KernelResources(Record):
    """One kernel, compiled with one set of constants."""

    name: str
    line: int | None = Field(description="of its `def` in the candidate; null: it lies elsewhere")
    constants: dict[str, Constant] = Field(default_factory=dict, description="its constexpr values")
    warps: int | None = Field(default=None, description="null where the launch decides")
    stages: int | None = Field(default=None, description="null where there is no such thing")
    registers: int | None = Field(description="per thread; null where the compiler does not say")
    spill_bytes: int | None = Field(description="registers moved to memory, per thread")
    shared_bytes: int = Field(description="shared memory per block")
    occupancy: float | None = Field(
        description="share of a multiprocessor's warps that fit at a time; null if it does not fit "
        "or is not known"
    )
    fits: bool = Field(description="within the target's shared memory and threads per block?")
    compile_seconds: float
    launches: int | None = Field(
        default=None, description="0: only tried, e.g. by an autotuner; null: not known"
    )
    workloads: tuple[str, ...] = Field(default=(), description="those that launch it")


class KernelFailure(Record):
    """One kernel that the compiler rejected for one set of constants."""

    name: str
    line: int | None = Field(description="of the error, in the candidate")
    constants: dict[str, Constant] = Field(default_factory=dict)
    message: str


class CompileReport(VersionedRecord):
    """The kernels that a candidate's `forward` would launch on `target`; of a candidate whose
    kernels are texts, all of them.

    It is written with the candidate's help, and so it is advice and not evidence: it says what does
    not compile, and what to improve. Only an evaluation says what is right and fast.
    """

    task: str
    task_hash: str
    candidate_hash: str
    backend: str
    target: str
    shared_limit: int = Field(description="bytes of shared memory that a block may have")
    stage: Stage
    reason: Reason | None = None
    message: str = ""
    log: str = Field(default="", description="traceback, and the end of what was printed")
    kernels: tuple[KernelResources, ...] = ()
    failures: tuple[KernelFailure, ...] = ()
    compiler: str = Field(description="its name and version")
    seconds: float
    created_at: datetime

    @model_validator(mode="after")
    def _stage_and_reason_agree(self) -> Self:
        expected = Stage.OK if self.reason is None else MEANINGS[self.reason].stage
        if self.stage is not expected:
            raise ValueError(f"reason {self.reason} does not belong to stage {self.stage}")
        return self

    @property
    def ok(self) -> bool:
        return self.stage is Stage.OK
