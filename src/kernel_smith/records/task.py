"""A task: what to speed up, and how a faster answer may differ from the slow one."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from kernel_smith.records.base import Record, VersionedRecord, content_hash


class Precision(StrEnum):
    """The coarsest arithmetic that a candidate may use inside."""

    STRICT = "strict"
    TF32 = "tf32"
    BF16 = "bf16"
    FP16 = "fp16"


class Variant(StrEnum):
    """A transformation of the author's inputs that a correct kernel must survive."""

    LARGE = "large"
    SMALL = "small"
    HUGE = "huge"
    TINY = "tiny"
    SHIFTED = "shifted"
    UNEVEN = "uneven"
    SPIKES = "spikes"
    SORTED = "sorted"
    TIES = "ties"
    EQUAL = "equal"
    STRIDED = "strided"


class Admission(StrEnum):
    """Why a task cannot tell a right answer from a wrong one."""

    CONSTANT_OUTPUT = "constant-output"
    ZERO_OUTPUT = "zero-output"
    INPUT_INDEPENDENT = "input-independent"
    SEED_INDEPENDENT = "seed-independent"
    NON_FINITE = "non-finite"
    ACCEPTS_ZEROS = "accepts-zeros"
    ACCEPTS_MEAN = "accepts-mean"
    RANDOM_REFERENCE = "random-reference"
    MUTATES_INPUTS = "mutates-inputs"


class Workload(Record):
    """One set of sizes: keyword arguments for `get_inputs` and `get_init_inputs`, with a weight."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    params: dict[str, Any] = Field(default_factory=dict)
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)


class Tolerance(Record):
    """The author's own bound, where the derived one does not fit the task."""

    rtol: float = Field(ge=0, allow_inf_nan=False)
    atol: float = Field(ge=0, allow_inf_nan=False)


class Task(VersionedRecord):
    """A task file, read but not executed."""

    name: str = Field(min_length=1)
    source: str
    path: str | None = None
    family: str = "unsorted"
    description: str = ""
    precision: Precision = Precision.STRICT
    tolerance: Tolerance | None = None
    workloads: tuple[Workload, ...] = (Workload(name="default"),)
    variants: tuple[Variant, ...] = (
        Variant.LARGE,
        Variant.SMALL,
        Variant.HUGE,
        Variant.TINY,
        Variant.SHIFTED,
        Variant.UNEVEN,
        Variant.SPIKES,
        Variant.SORTED,
        Variant.TIES,
        Variant.EQUAL,
    )
    library_calls: bool = Field(default=True, description="may a candidate also call the library?")
    admit: tuple[Admission, ...] = Field(default=(), description="admission findings to live with")
    starts: dict[str, str] = Field(
        default_factory=dict, description="backend -> path of a correct starting kernel"
    )

    @field_validator("workloads")
    @classmethod
    def _at_least_one(cls, workloads: tuple[Workload, ...]) -> tuple[Workload, ...]:
        if not workloads:
            raise ValueError("a task needs at least one workload")
        return workloads

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        names = [workload.name for workload in self.workloads]
        if len(set(names)) != len(names):
            raise ValueError(f"workload names must differ, got {names}")
        return self

    @property
    def content_hash(self) -> str:
        """The task's identity: everything but where its files lie."""
        return content_hash(self.model_dump_json(exclude={"path", "starts"}))
