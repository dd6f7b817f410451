"""What a worker is asked to do: a program to change, and sections of what may help."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

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


class Focus(Record):
    """The workload that is to become faster: the one that is furthest from its limit."""

    kind: Literal["focus"] = "focus"
    workload: str
    why: str = Field(description="what is known of it, in a few words")


class Attempt(Record):
    """What was tried, and what came of it."""

    summary: str
    failed: str = Field(default="", description="the reason; empty: it worked")
    speedup: float = Field(default=0.0, description="what is certain of it; 0: it was not timed")
    gains: dict[str, float] = Field(
        default_factory=dict, description="workload -> the speed over the parent's"
    )


class Attempts(Record):
    """What was made from the parent and its ancestors and worked, faster or not; newest last."""

    kind: Literal["attempts"] = "attempts"
    attempts: tuple[Attempt, ...]


class Winner(Record):
    """The best program of another run."""

    task: str
    speedup: float
    source: str


class Knowledge(Record):
    """The best programs of the nearest other tasks."""

    kind: Literal["knowledge"] = "knowledge"
    winners: tuple[Winner, ...]


class Plan(Record):
    """What is to be done to the parent, decided by somebody else."""

    kind: Literal["plan"] = "plan"
    text: str
    edit: str = Field(default="", description="the mutator's name for it, if it has one")


class Question(Record):
    """To be answered in words, and not by a program."""

    kind: Literal["question"] = "question"
    text: str


class Broken(Record):
    """A program that failed, made from the parent: it is to be mended."""

    kind: Literal["broken"] = "broken"
    program: Elite


class Summary(Record):
    """What somebody who has seen all of the run says about it."""

    kind: Literal["summary"] = "summary"
    text: str


Section = Annotated[
    Exemplars
    | Contrast
    | Failures
    | Lessons
    | Specialists
    | Focus
    | Attempts
    | Knowledge
    | Plan
    | Question
    | Broken
    | Summary,
    Field(discriminator="kind"),
]
SectionKind = TypeVar("SectionKind", bound=Record)


class Request(Record):
    """What a worker is given to work on."""

    task: Task
    backend: str
    parent: Elite | None = Field(default=None, description="null: write a first program")
    context: tuple[Section, ...] = Field(default=(), description="what may help")
    hardware: str = Field(default="", description="the machine, in sentences")
    target: str = Field(default="", description="what is to be beaten, in a sentence")
    seed: int = Field(default=0, description="for whatever is drawn at random")

    def section(self, kind: type[SectionKind]) -> SectionKind | None:
        """The first section of a kind, if there is one."""
        return next((part for part in self.context if isinstance(part, kind)), None)

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
