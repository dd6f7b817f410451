"""The first look at a problem: a program that every backend takes as far as the problem."""

from __future__ import annotations

import pytest

from kernel_smith.bench.fitness import Examiner, unfit
from kernel_smith.errors import (
    BadInput,
    MissingPrerequisite,
    NotAdmitted,
    NotEnoughMemory,
    TookTooLong,
    UserError,
)
from kernel_smith.evaluation.screen import screen
from kernel_smith.records import Candidate, Options, Reason, Task
from kernel_smith.records.job import JobError
from kernel_smith.testing.trivial import TrivialEngine

TROUBLE = [
    (NotAdmitted, "refused"),
    (BadInput, "broken"),
    (NotEnoughMemory, "too-large"),
    (TookTooLong, "hung"),
    (MissingPrerequisite, None),
]


@pytest.mark.parametrize("backend", ["cpp", "cuda", "maca", "hip", "triton"])
def test_the_screen_lets_it_pass_or_the_problem_would_not_be_looked_at(backend: str) -> None:
    shown: list[Candidate] = []

    def judge(candidate: Candidate) -> Reason:
        shown.append(candidate)
        return Reason.COMPILER_REJECTED

    examiner = Examiner(TrivialEngine(judge), Options())
    assert examiner.look_at(Task(name="any", source=""), backend) is None
    (program,) = shown
    assert program.backend == backend
    assert screen(program.source) == []


def test_each_problem_is_looked_at_once() -> None:
    engine = TrivialEngine(lambda _: Reason.COMPILER_REJECTED)
    examiner = Examiner(engine, Options())
    for name in ("a", "b", "a", "a"):
        examiner.look_at(Task(name=name, source=""), "cpp")
    assert len(engine.evaluated) == 2


@pytest.mark.parametrize(("kind", "status"), TROUBLE)
def test_trouble_keeps_its_kind_on_the_way_through_a_service(
    kind: type[UserError], status: str | None
) -> None:
    told = JobError.of(kind("what", hint="remedy"))
    arrived = JobError.model_validate_json(told.model_dump_json()).as_exception()
    assert type(arrived) is kind
    assert isinstance(arrived, UserError) and unfit(arrived) == status
