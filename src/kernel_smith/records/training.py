"""What a run leaves behind for whoever trains a model: its steps, and examples made from them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kernel_smith.records.base import Record, VersionedRecord, content_hash
from kernel_smith.records.candidate import Candidate
from kernel_smith.records.evaluation import Interval, WorkloadGain
from kernel_smith.records.step import Conversation, Elite, Message
from kernel_smith.records.task import Task


class StepGain(Record):
    """How much faster one program is than another, as far as it was measured."""

    overall: Interval
    workloads: tuple[WorkloadGain, ...] = ()
    p99: float | None = Field(
        default=None, description="the least favourable ratio of P99s; null: not known"
    )
    side_by_side: bool = Field(description="timed in the same rounds, not one after the other")
    measured_again: bool = Field(
        default=False,
        description="no first measuring of a program is part of it: the luckiest of many look best",
    )


class TrainingStep(VersionedRecord):
    """One step of a run with everything that decides whether it is worth learning from."""

    store: str = Field(description="the file that it was read from")
    run: str
    step: int
    task: Task
    proposer: str
    summary: str = ""
    parent: Elite | None = Field(description="null: a first program, made from the reference")
    child: Elite
    grandparent: Candidate | None = None
    gain: StepGain | None = Field(
        default=None,
        description="over the parent, of a first step over the reference; null: not measured",
    )
    gain_over_grandparent: StepGain | None = None
    depth: int = Field(ge=0, description="programs between the start of the lineage and the child")
    flagged: tuple[str, ...] = Field(
        default=(), description="hashes in the lineage that did not keep their good verdict"
    )
    shown: tuple[str, ...] = Field(
        default=(), description="hashes of other programs of the run that the prompt shows"
    )
    best_shown: float = Field(default=0.0, description="the highest score among them")
    was_best: bool = Field(default=False, description="the best of its run when it was measured")
    repairs: str | None = Field(
        default=None,
        description="hash of the failed program that the answer mends, and that its edits apply to",
    )
    conversation: Conversation | None = None

    @property
    def first(self) -> bool:
        """From the reference to a kernel, not from a kernel to the next."""
        return self.parent is None

    @property
    def identity(self) -> str:
        """Names the step wherever it was copied to."""
        parent = self.parent.candidate.content_hash if self.parent else ""
        return content_hash(
            "\0".join((self.task.content_hash, parent, self.child.candidate.content_hash))
        )


class Example(Record):
    """One row of a data set: what is asked, what is a good answer, and what it is worth."""

    id: str
    kind: Literal["first", "later"]
    task: Task
    backend: str
    messages: tuple[Message, ...] = Field(description="the question: system and user")
    answer: str
    mode: Literal["edits", "full"]
    parent: str | None = Field(description="the parent's source; null: the reference is the parent")
    child: str
    gain: Interval | None
    proposer: str
    run: str
    step: int
