"""The words of an evolution: what is proposed from what, by whom, and what came of it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from kernel_smith.records.base import Record, VersionedRecord
from kernel_smith.records.candidate import Candidate
from kernel_smith.records.device import NsightKernel
from kernel_smith.records.evaluation import Evaluation
from kernel_smith.records.options import Options
from kernel_smith.records.task import Task
from kernel_smith.records.verdict import Reason, Stage

Unfit = Literal["refused", "broken", "too-large", "hung"]
"""Why a task cannot be judged: its results tell nothing, its code fails, it finds no memory, or it
does not end in its time."""

Label = dict[str, int | str]
"""What a method wants to know again of what it asked for: an island, a node."""


class Usage(Record):
    """What asking a language model took."""

    prompt_tokens: int = 0
    cached_tokens: int = Field(default=0, description="of the prompt's, those that cost less")
    completion_tokens: int = 0
    dollars: float = 0.0
    seconds: float = 0.0
    requests: int = 0

    def __add__(self, other: Usage) -> Usage:
        fields = type(self).model_fields
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in fields})


class Message(Record):
    role: Literal["system", "user", "assistant"]
    content: str


class Conversation(Record):
    """The full exchange with a model that led to a proposal."""

    model: str
    messages: tuple[Message, ...]
    response: str
    usage: Usage = Usage()


class Proposal(Record):
    """One candidate, and where it came from."""

    candidate: Candidate
    proposer: str = Field(
        description="start, seed, tuner, mutator, chooser, merger, model or outside"
    )
    parents: tuple[str, ...] = Field(
        default=(), description="hashes of candidates; the first is the one that was changed"
    )
    summary: str = Field(default="", description="what was changed, in a sentence")
    details: dict[str, Any] = Field(default_factory=dict, description="the proposer's own notes")
    conversation: Conversation | None = None
    device_seconds: float = Field(
        default=0.0, ge=0, description="spent on a device before it was proposed"
    )


class Note(Record):
    """What a worker answers with where it was to think, and not to write a program."""

    text: str
    conversation: Conversation | None = None


class Elite(Record):
    """A candidate with its evaluation."""

    candidate: Candidate
    evaluation: Evaluation

    @property
    def score(self) -> float:
        """The speedup that is certain: the lower end of its interval. Zero if there is none."""
        return score(self.evaluation)


class Failure(Record):
    """A proposal that did not work, as a warning to the next one."""

    summary: str
    stage: Stage
    reason: Reason
    message: str = ""


class Budget(Record):
    """When to stop. None: not bounded by this."""

    evaluations: int | None = Field(default=None, ge=1)
    rounds: int | None = Field(
        default=None, ge=1, description="answers of workers, whatever came of them"
    )
    seconds: float | None = Field(default=None, gt=0)
    device_seconds: float | None = Field(default=None, gt=0, description="spent evaluating")
    tokens: int | None = Field(default=None, ge=1)
    dollars: float | None = Field(default=None, gt=0)
    target: float | None = Field(default=None, gt=0, description="a speedup that is enough")
    plateau: int | None = Field(
        default=None, ge=1, description="evaluations in a row without a new best"
    )


class RunConfig(VersionedRecord):
    """All that decides how a run goes, besides chance and the machine."""

    backend: str
    method: str = Field(default="islands", description="how it is searched")
    proposers: dict[str, float] = Field(description="name -> weight; the bandit learns the rest")
    budget: Budget
    options: Options = Options()
    confirmation: Options = Field(
        default=Options(baselines=("eager", "compile")),
        description="how the winner is measured in the end: at full length, against all of these",
    )
    islands: int = Field(default=3, ge=1)
    elites_per_cell: int = Field(default=2, ge=1)
    features: tuple[str, ...] = ("complexity", "technique")
    migrate_every: int = Field(default=20, ge=1, description="evaluations")
    proposals_in_flight: int = Field(default=2, ge=1)
    evaluations_in_flight: int = Field(default=1, ge=1)
    exemplars: int = Field(default=3, ge=0)
    untimed: bool = Field(
        default=False, description="where nothing can be timed, all correct programs count the same"
    )
    counters: bool = Field(
        default=False,
        description="let a profiler look at the best, without the sandbox, when nothing better is "
        "found",
    )
    seed: int = 0
    settings: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="proposer -> settings of its own"
    )


class RunStarted(VersionedRecord):
    kind: Literal["run-started"] = "run-started"
    run: str
    task: Task
    config: RunConfig
    at: datetime


class RunResumed(VersionedRecord):
    kind: Literal["run-resumed"] = "run-resumed"
    budget: Budget | None = Field(default=None, description="the new one; null: as it was")
    at: datetime


class StepProposed(VersionedRecord):
    """A proposal that is to be evaluated. A step without a later event was in flight."""

    kind: Literal["step-proposed"] = "step-proposed"
    step: int
    label: Label = Field(default_factory=dict, description="the method's own words about it")
    proposal: Proposal
    at: datetime

    @model_validator(mode="before")
    @classmethod
    def _read_island(cls, data: Any) -> Any:
        """Runs that were stored earlier had one method, and every step an island."""
        if isinstance(data, dict) and "island" in data:
            data = dict(data)
            data["label"] = {"island": data.pop("island")}
        return data


class StepEvaluated(VersionedRecord):
    kind: Literal["step-evaluated"] = "step-evaluated"
    step: int
    evaluation: Evaluation
    seconds: float = Field(description="from submitting to the answer")
    at: datetime


class StepDropped(VersionedRecord):
    """A proposal that is not evaluated: the program was known, or there was none."""

    kind: Literal["step-dropped"] = "step-dropped"
    step: int
    label: Label = Field(default_factory=dict, description="the method's own words about it")
    proposer: str
    parent: str | None = None
    why: str
    conversation: Conversation | None = None
    at: datetime


class Declined(VersionedRecord):
    """A worker had nothing to propose from this parent."""

    kind: Literal["declined"] = "declined"
    worker: str
    label: Label = Field(default_factory=dict, description="the method's own words about it")
    parent: str | None = None
    why: str = ""
    device_seconds: float = Field(default=0.0, ge=0, description="spent on a device in vain")
    at: datetime


class Noted(VersionedRecord):
    """A worker has thought: a text, and no candidate."""

    kind: Literal["noted"] = "noted"
    worker: str
    label: Label = Field(default_factory=dict, description="the method's own words about it")
    note: Note
    at: datetime


class Remeasured(VersionedRecord):
    """A challenger was measured again before it was called the best."""

    kind: Literal["remeasured"] = "remeasured"
    candidate: str
    evaluation: Evaluation
    confirming: bool = Field(
        default=False,
        description="the search was over, and this measuring, which chose nobody, is what counts",
    )
    seconds: float = Field(default=0.0, description="from submitting to the answer")
    at: datetime


class MeasuredInVain(VersionedRecord):
    """A measuring that changes nothing: too noisy, or it says less than was known. It took its
    time nevertheless."""

    kind: Literal["measured-in-vain"] = "measured-in-vain"
    candidate: str
    seconds: float = Field(description="from submitting to the answer")
    at: datetime


class Counted(VersionedRecord):
    """A profiler has looked at the best: its counters are part of what is known of it."""

    kind: Literal["counted"] = "counted"
    candidate: str
    nsight: tuple[NsightKernel, ...]
    seconds: float = Field(description="from submitting to the answer")
    at: datetime


class ConfirmationBegun(VersionedRecord):
    """The search is over for now: this candidate is being measured at full length."""

    kind: Literal["confirmation-begun"] = "confirmation-begun"
    candidate: str
    at: datetime


class Migrated(VersionedRecord):
    """An elite visited another island. Stored by earlier versions; now it follows from the rest."""

    kind: Literal["migrated"] = "migrated"
    candidate: str
    source: int
    target: int
    at: datetime


class RunEnded(VersionedRecord):
    kind: Literal["run-ended"] = "run-ended"
    why: str
    best: str | None = Field(
        default=None, description="the candidate that the run answers with; null: none was timed"
    )
    unconfirmed: str = Field(
        default="", description="why that candidate was not measured at full length, if it was not"
    )
    unfit: Unfit | None = Field(
        default=None, description="what kept the task from being judged; null: nothing did"
    )
    at: datetime


Event = Annotated[
    RunStarted
    | RunResumed
    | StepProposed
    | StepEvaluated
    | StepDropped
    | Declined
    | Noted
    | Remeasured
    | MeasuredInVain
    | Counted
    | ConfirmationBegun
    | Migrated
    | RunEnded,
    Field(discriminator="kind"),
]


def score(evaluation: Evaluation) -> float:
    """The lower end of the speedup's interval; zero for whatever earned no timing."""
    timed = evaluation.ok and evaluation.timing is not None
    return evaluation.timing.speedup.low if timed and evaluation.timing else 0.0


def faster_than(evaluation: Evaluation) -> tuple[str, ...]:
    """The baselines that it is significantly faster than."""
    if evaluation.timing is None:
        return ()
    return tuple(each.baseline for each in evaluation.timing.speedups if each.speedup.low > 1)


def shown_faster(evaluation: Evaluation) -> bool:
    """Is it significantly faster than every baseline that it was measured against?"""
    return evaluation.timing is not None and len(faster_than(evaluation)) == len(
        evaluation.timing.speedups
    )
