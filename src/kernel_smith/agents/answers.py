"""What an agent gets back: short records, with prose where prose says more."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from kernel_smith.records import Evaluation, Interval, Record, Task, score
from kernel_smith.records.bench import BenchRow
from kernel_smith.records.prose import render

_LONGEST_TEXT = 12_000


class TaskLine(Record):
    name: str
    family: str
    description: str
    precision: str
    workloads: list[str]
    backends: list[str] = Field(description="those that it brings a starting kernel for")

    @classmethod
    def of(cls, task: Task) -> TaskLine:
        return cls(
            name=task.name,
            family=task.family,
            description=task.description.partition("\n")[0],
            precision=task.precision.value,
            workloads=[workload.name for workload in task.workloads],
            backends=sorted(task.starts),
        )


class Tasks(Record):
    tasks: list[TaskLine]


class TaskText(Record):
    """A task in full."""

    task: TaskLine
    reference: str = Field(description="its source: the reference, and how inputs are made")
    starts: dict[str, str] = Field(description="backend -> the starting kernel's source")


class Verdict(Record):
    """What the judge says about a program."""

    ok: bool = Field(description="correct, honest, and timed where that is possible")
    stage: str
    reason: str | None = Field(description="the gate's name for what is wrong; null: nothing")
    score: float = Field(description="the speedup that is certain: the interval's lower end")
    speedups: dict[str, Interval] = Field(description="baseline -> times its speed, 95%")
    text: str = Field(description="the whole story: read this")

    @classmethod
    def of(cls, evaluation: Evaluation) -> Verdict:
        timed = evaluation.timing.speedups if evaluation.timing is not None else ()
        return cls(
            ok=evaluation.ok,
            stage=evaluation.stage.value,
            reason=evaluation.reason.value if evaluation.reason else None,
            score=score(evaluation),
            speedups={each.baseline: each.speedup for each in timed},
            text=render(evaluation)[:_LONGEST_TEXT],
        )


class Begun(Record):
    """A run that waits for programs."""

    run: str
    task: str
    backend: str
    step: int | None = Field(description="of the first program; null: there is none yet")
    verdict: Verdict | None


class Asked(Record):
    """A program to improve, and what to know for that."""

    run: str
    parent_step: int | None = Field(description="name it as `parent` when you tell your version")
    program: str
    verdict: Verdict
    hardware: str
    failures: list[str] = Field(description="changes of this program that did not work")
    lessons: list[str] = Field(description="kinds of changes that paid, or did not, in this run")
    rules: str | None = Field(description="what the judge demands; null if brief")
    dialect: str | None = Field(description="how kernels are written; null if brief")
    reference: str | None = Field(description="slow and right; null if brief")


class Again(Record):
    step: int | None
    verdict: Verdict


class ToldAnswer(Record):
    """What came of a program."""

    step: int
    verdict: Verdict
    measured_again: list[Again] = Field(
        description="the measurings that decided who leads, where the program took the lead"
    )
    is_best: bool
    best_step: int | None
    evaluations_left: int = Field(description="in this session")


class RunLine(Record):
    run: str
    task: str
    backend: str
    state: str
    evaluations: int
    best: Interval | None = Field(description="times the speed of eager")
    confirmed: bool


class Runs(Record):
    runs: list[RunLine]


class StepLine(Record):
    step: int
    proposer: str
    parent_step: int | None
    summary: str
    outcome: str


class RunText(Record):
    """A run, step by step, and its best program."""

    run: str
    task: str
    backend: str
    steps: list[StepLine]
    best_step: int | None
    best_program: str | None
    verdict: Verdict | None


class Advice(Record):
    sections: list[str] = Field(description="Markdown")


class BenchLine(Record):
    """What one arm made of one problem."""

    problem: str
    arm: str
    status: str
    why: str = Field(description="why it ended so; empty where it was solved")
    speedups: dict[str, Interval] = Field(description="baseline -> times its speed, 95%")


class Benched(Record):
    """What came of a benchmark. Call it again with the same words to go on with what is left."""

    folder: str = Field(description="for bench_report, and for `kernel-smith report`")
    solved: int
    unfinished: int = Field(description="the time or the evaluations of the session were over")
    rows: list[BenchLine]
    text: str = Field(description="the report, Markdown")
    evaluations_left: int = Field(default=0, description="in this session")

    @classmethod
    def of(cls, rows: list[BenchRow], folder: Path, text: str) -> Benched:
        return cls(
            folder=str(folder),
            solved=sum(row.status == "correct" for row in rows),
            unfinished=sum(row.status == "unfinished" for row in rows),
            rows=[
                BenchLine(
                    problem=row.problem,
                    arm=row.arm,
                    status=row.status,
                    why="" if row.status == "correct" else row.why,
                    speedups=row.speedups,
                )
                for row in rows
            ],
            text=text[:_LONGEST_TEXT],
        )


class Report(Record):
    text: str = Field(description="Markdown")
