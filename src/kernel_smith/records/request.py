"""What a worker is asked to do: a program to change, and sections of what may help."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from kernel_smith.records.base import Record
from kernel_smith.records.step import Elite, Failure
from kernel_smith.records.task import Task


class Exemplars(Record):
    """Other programs of the run: top and diverse ones."""

    kind: Literal["exemplars"] = "exemplars"
    programs: tuple[Elite, ...]


class Contrast(Record):
    """Programs that are slower than the parent, to be compared with it before one is written."""

    kind: Literal["contrast"] = "contrast"
    programs: tuple[Elite, ...]


class Failures(Record):
    """What was tried from here and did not work, newest last."""

    kind: Literal["failures"] = "failures"
    failures: tuple[Failure, ...]


class Lessons(Record):
    """What the run has learned about kinds of changes, in sentences."""

    kind: Literal["lessons"] = "lessons"
    lessons: tuple[str, ...]


class Specialists(Record):
    """The fastest program of each workload, where another than the parent is."""

    kind: Literal["specialists"] = "specialists"
    programs: dict[str, Elite] = Field(description="workload -> program")


Section = Annotated[
    Exemplars | Contrast | Failures | Lessons | Specialists, Field(discriminator="kind")
]


class Request(Record):
    """What a worker is given to work on."""

    task: Task
    backend: str
    parent: Elite | None = Field(default=None, description="null: write a first program")
    context: tuple[Section, ...] = Field(default=(), description="what may help")
    hardware: str = Field(default="", description="the machine, in sentences")
    seed: int = Field(default=0, description="for whatever is drawn at random")

    @property
    def exemplars(self) -> tuple[Elite, ...]:
        sections = (part for part in self.context if isinstance(part, Exemplars))
        return tuple(elite for section in sections for elite in section.programs)

    @property
    def contrast(self) -> tuple[Elite, ...]:
        sections = (part for part in self.context if isinstance(part, Contrast))
        return tuple(elite for section in sections for elite in section.programs)

    @property
    def specialists(self) -> dict[str, Elite]:
        sections = (part for part in self.context if isinstance(part, Specialists))
        return {name: elite for section in sections for name, elite in section.programs.items()}

    @property
    def failures(self) -> tuple[Failure, ...]:
        sections = (part for part in self.context if isinstance(part, Failures))
        return tuple(failure for section in sections for failure in section.failures)

    @property
    def lessons(self) -> tuple[str, ...]:
        sections = (part for part in self.context if isinstance(part, Lessons))
        return tuple(lesson for section in sections for lesson in section.lessons)
