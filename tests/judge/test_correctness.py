"""What is said about a candidate's errors: figures that can be held against each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from kernel_smith.evaluation.judge import correctness
from kernel_smith.evaluation.judge.correctness import check_workload
from kernel_smith.evaluation.judge.inputs.budget import Budget
from kernel_smith.evaluation.judge.inputs.first_look import look_at
from kernel_smith.evaluation.judge.inputs.pool import make_pool
from kernel_smith.evaluation.judge.inputs.reference import (
    InputSet,
    Reference,
    Result,
    Variation,
)
from kernel_smith.evaluation.judge.platform.participant import Participant
from kernel_smith.evaluation.judge.rejection import Rejected
from kernel_smith.records import Accuracy, Task, Workload

WriteTask = Callable[..., Task]
Answer = Callable[[InputSet], list[torch.Tensor]]

SMALL = Budget(kept=256 << 20, at_once=16 << 20, free=1 << 30)
LARGE = Budget(kept=0, at_once=32 << 10, free=1 << 30)

# Of small values the sum keeps few digits, so that more of them may be off.
CANCELLING = """
import torch

TASK = SETTINGS

class Model(torch.nn.Module):
    def forward(self, x):
        return RESULT

def get_inputs():
    return [torch.randn(40, 50)]
"""
LOSING_DIGITS = CANCELLING.replace("RESULT", "(x + 10) - 10").replace(
    "SETTINGS", '{"variants": ["small"]}'
)
OWN_TOLERANCE = LOSING_DIGITS.replace(
    '"small"]', '"large"], "tolerance": {"rtol": 1e-3, "atol": 1e-2}'
)
HARDLY_VARYING = CANCELLING.replace("RESULT", "100 + x / 100").replace("SETTINGS", "{}")
SEVERAL = CANCELLING.replace("RESULT", "(x > 0, (x + 10) - 10, x.half())").replace("SETTINGS", "{}")
WHOLE_NUMBERS = CANCELLING.replace("RESULT", "x.argmax(-1)").replace("SETTINGS", "{}")


class Answering:
    """A participant that answers as it is told."""

    fetches = False

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._bound: list[InputSet] = []

    def bind(self, sets: Sequence[InputSet], check_signature: bool = False) -> None:
        self._bound = list(sets)

    def run(self, *, thorough: bool) -> Any:
        return SimpleNamespace(windows=SimpleNamespace(run_wall=1.0))

    def bound(self, call: int) -> InputSet:
        return self._bound[call]

    def outputs(self, call: int) -> list[torch.Tensor]:
        return self._answer(self._bound[call])

    def inputs_unchanged(self, call: int) -> bool:
        return True

    def parameters_unchanged(self) -> bool:
        return True

    def unbind(self) -> None:
        self._bound = []


@pytest.fixture
def check(
    write_task: WriteTask, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, float, Budget], Accuracy]:
    """Checks answers whose floating point values are off by so many times the reference's error."""
    monkeypatch.setattr(correctness, "check_descriptions", lambda batch, described: None)

    def run(text: str, times: float, budget: Budget) -> Accuracy:
        task = write_task(text)
        reference, (workload,) = Reference(task), task.workloads
        if text is HARDLY_VARYING:
            reference.compare_by_variation(workload, Variation(spread=[0.01], lost=[0.0]))
        pool = make_pool(reference, workload, 2, budget, look_at(reference, workload, budget))

        def answer(inputs: InputSet) -> list[torch.Tensor]:
            own = reference.call(workload, inputs).tensors
            exact = reference.oracle(workload, inputs).tensors
            return [
                (right + times * (mine.double() - right)).to(mine.dtype)
                if mine.is_floating_point()
                else mine
                for mine, right in zip(own, exact, strict=True)
            ]

        candidate = cast(Participant, Answering(answer))
        return check_workload(candidate, pool, {}, 0.0).accuracy

    return run


@pytest.mark.parametrize("budget", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize(
    "text",
    [LOSING_DIGITS, OWN_TOLERANCE, HARDLY_VARYING, SEVERAL],
    ids=["losing_digits", "own_tolerance", "hardly_varying", "several"],
)
def test_errors_of_a_right_candidate_are_no_more_than_allowed(
    check: Callable[[str, float, Budget], Accuracy], text: str, budget: Budget
) -> None:
    accuracy = check(text, 3.0, budget)
    assert accuracy.candidate_error is not None
    assert 0 < accuracy.candidate_error <= accuracy.allowed_error
    assert accuracy.reference_error <= accuracy.allowed_error


def test_errors_of_a_wrong_candidate_are_more_than_allowed(
    check: Callable[[str, float, Budget], Accuracy],
) -> None:
    with pytest.raises(Rejected) as caught:
        check(LOSING_DIGITS, 9.0, SMALL)
    accuracy = caught.value.evidence["accuracy"]  # what the reference says counts as right, too
    assert accuracy.candidate_error > accuracy.allowed_error
    assert accuracy.excess == pytest.approx(8 / 4, rel=0.1)


def test_of_whole_numbers_no_error_is_allowed(
    check: Callable[[str, float, Budget], Accuracy],
) -> None:
    accuracy = check(WHOLE_NUMBERS, 1.0, SMALL)
    assert (accuracy.candidate_error, accuracy.allowed_error) == (0.0, 0.0)


def test_right_answers_are_there_before_the_candidate_needs_memory(
    write_task: WriteTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(correctness, "check_descriptions", lambda batch, described: None)
    task = write_task(LOSING_DIGITS)
    reference, (workload,) = Reference(task), task.workloads
    pool = make_pool(reference, workload, 2, LARGE, look_at(reference, workload, LARGE))
    events: list[str] = []
    call = reference.call

    def note(workload: Workload, inputs: InputSet) -> Result:
        if len(inputs.tensors[0]) == 40:  # and not a few rows
            events.append("reference")
        return call(workload, inputs)

    def note_library(workload: Workload, inputs: InputSet) -> None:
        events.append("library")

    class Noting(Answering):
        def run(self, *, thorough: bool) -> Any:
            events.append("candidate")
            return super().run(thorough=thorough)

        def unbind(self) -> None:
            events.append("done")
            super().unbind()

    monkeypatch.setattr(reference, "call", note)
    monkeypatch.setattr(reference, "library", note_library)
    candidate = Noting(lambda inputs: call(workload, inputs).tensors)
    check_workload(cast(Participant, candidate), pool, {}, 0.0)
    # Of the inputs that are answered twice, the second answer is known. PyTorch's own coarse
    # answer matters to variants alone.
    turns = sorted(" ".join(events).removesuffix(" done").split(" done "))
    assert turns == ["candidate", "reference candidate", "reference library candidate"]
