"""What comes back from the sandbox: written by untrusted code, so every part of it is bounded."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

MAX_BYTES = 4 << 20

_MOST_KERNELS = 2000
_Name = Annotated[str, Field(max_length=300)]
_Text = Annotated[str, Field(max_length=10_000)]
_Count = Annotated[int, Field(ge=0, lt=1 << 53)]
_Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Number = Annotated[float, Field(allow_inf_nan=False)]
_Whole = Annotated[int, Field(gt=-(1 << 63), lt=1 << 63)]
_Constants = Annotated[
    dict[_Name, bool | _Whole | _Number | _Name | None], Field(max_length=_MOST_KERNELS)
]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CompiledKernel(_Part):
    name: _Name
    line: _Count | None
    constants: _Constants
    warps: Annotated[int, Field(ge=1, le=1024)]
    stages: _Count
    registers: _Count | None
    spill_bytes: _Count | None
    shared_bytes: _Count
    compile_seconds: _Seconds
    launches: _Count
    workloads: Annotated[tuple[_Name, ...], Field(max_length=_MOST_KERNELS)]


class FailedKernel(_Part):
    name: _Name
    line: _Count | None
    constants: _Constants
    message: _Text


class Outcome(_Part):
    kind: Literal["done", "exception", "resources", "compiler", "signature", "memory"]
    message: _Text
    traceback: _Text


class Answer(_Part):
    """The whole report; without an outcome, the process never got to the end."""

    phase: _Name
    kernels: Annotated[tuple[CompiledKernel, ...], Field(max_length=_MOST_KERNELS)]
    failures: Annotated[tuple[FailedKernel, ...], Field(max_length=_MOST_KERNELS)]
    outcome: Outcome | None


def read_answer(path: Path) -> Answer | None:
    """The report, or None if there is none that can be understood."""
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        return None
    try:
        return Answer.model_validate_json(data)
    except ValidationError:
        return None
