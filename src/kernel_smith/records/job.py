"""An evaluation that somebody asked a service for: the request, and how far it has come."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal, Self

from pydantic import Field, model_validator

from kernel_smith.errors import (
    BadInput,
    InternalError,
    MissingPrerequisite,
    NotAdmitted,
    NotEnoughMemory,
    TookTooLong,
    UserError,
)
from kernel_smith.records.base import Record, VersionedRecord, content_hash
from kernel_smith.records.candidate import Candidate
from kernel_smith.records.evaluation import Evaluation
from kernel_smith.records.options import Options
from kernel_smith.records.task import Task


class JobState(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        return self not in (JobState.WAITING, JobState.RUNNING)


class JobRequest(VersionedRecord):
    task: Task
    candidate: Candidate
    options: Options = Options()
    beside: Candidate | None = Field(
        default=None, description="another candidate to time it beside, such as its parent"
    )
    priority: int = Field(default=0, ge=-10, le=10, description="among the client's own jobs")
    repeat: int = Field(
        default=0,
        ge=0,
        description="what was asked for before is answered as before; another number asks anew",
    )

    @property
    def key(self) -> str:
        """The same for requests that ask for the same; the priority does not matter."""
        return content_hash(
            self.task.content_hash,
            self.candidate.content_hash,
            self.options.model_dump_json(),
            str(self.repeat),
            *((self.beside.content_hash,) if self.beside is not None else ()),
        )


Trouble = Literal[
    "not-admitted",
    "took-too-long",
    "bad-input",
    "not-enough-memory",
    "missing-prerequisite",
    "internal",
]
# The more special ones first.
_TROUBLES: dict[Trouble, type[UserError]] = {
    "not-admitted": NotAdmitted,
    "took-too-long": TookTooLong,
    "bad-input": BadInput,
    "not-enough-memory": NotEnoughMemory,
    "missing-prerequisite": MissingPrerequisite,
}


class JobError(Record):
    """Why there is no evaluation. A bad candidate is not an error: its evaluation says so."""

    kind: Trouble
    what: str
    hint: str = ""

    @classmethod
    def of(cls, error: BaseException) -> JobError:
        """What an engine raised, to be told elsewhere."""
        for kind, raised in _TROUBLES.items():
            if isinstance(error, raised):
                return cls(kind=kind, what=_clean(error.what), hint=_clean(error.hint))
        told = (
            str(error) if isinstance(error, InternalError) else f"{type(error).__name__}: {error}"
        )
        return cls(kind="internal", what=_clean(told))

    def as_exception(self) -> Exception:
        """The same, to be raised here."""
        if self.kind in _TROUBLES:
            return _TROUBLES[self.kind](self.what, hint=self.hint)
        return InternalError(self.what)


class Job(VersionedRecord):
    id: str
    state: JobState
    priority: int = 0
    attempts: int = Field(default=0, ge=0, description="times that an evaluation was begun")
    submitted_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    evaluation: Evaluation | None = None
    error: JobError | None = None

    @model_validator(mode="after")
    def _state_and_outcome_agree(self) -> Self:
        if (self.evaluation is not None) != (self.state is JobState.DONE):
            raise ValueError(f"state {self.state} and an evaluation do not go together")
        if (self.error is not None) != (self.state is JobState.FAILED):
            raise ValueError(f"state {self.state} and an error do not go together")
        return self


def _clean(text: str) -> str:
    """A message may quote bytes that no JSON can hold."""
    return text.encode(errors="replace").decode()
