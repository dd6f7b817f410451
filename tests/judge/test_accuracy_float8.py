"""Results of eight bits: compared although torch has no arithmetic for them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from kernel_smith.evaluation.judge.inputs.reference import InputSet, Reference
from kernel_smith.evaluation.judge.values.accuracy import Expected, expect, is_finite
from kernel_smith.evaluation.judge.values.comparison import (
    Comparison,
    compare,
    plainly_right,
)
from kernel_smith.evaluation.judge.values.survey import histogram
from kernel_smith.records import Reason, Task

WriteTask = Callable[..., Task]

DTYPES = [torch.float8_e4m3fn, torch.float8_e5m2]
WRONG = {Reason.WRONG_VALUES, Reason.PRECISION}


class Case:
    """A task whose result has eight bits, one draw of its inputs, and the right answer."""

    def __init__(self, task: Task) -> None:
        self.reference = Reference(task)
        (self.workload,) = task.workloads
        self.inputs: InputSet = self.reference.draw(self.workload, 1)
        self.expected: Expected = expect(self.reference, self.workload, self.inputs)

    @property
    def right(self) -> torch.Tensor:
        return self.expected.reference.tensors[0].clone()

    def judge(self, *answers: torch.Tensor) -> Comparison:
        return compare(list(answers), self.expected, self.reference, self.workload, self.inputs)


@pytest.fixture
def case(write_task: WriteTask) -> Callable[..., Case]:
    def make(expression: str, inputs: str = "torch.randn(16, 64)") -> Case:
        text = f"""
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return {expression}

def get_inputs():
    return [{inputs}]
"""
        return Case(write_task(text))

    return make


def steps_away(tensor: torch.Tensor, steps: int, where: torch.Tensor) -> torch.Tensor:
    """Chosen elements, so many steps of the type further from zero."""
    moved = (tensor.view(torch.uint8) + steps).view(tensor.dtype)
    return torch.where(where, moved.float(), tensor.float()).to(tensor.dtype)


def largest(tensor: torch.Tensor) -> torch.Tensor:
    values = tensor.float().abs()
    return values == values.max()


both = pytest.mark.parametrize("dtype", DTYPES, ids=str)


@both
def test_the_references_own_answer_is_right(case: Callable[..., Case], dtype: torch.dtype) -> None:
    quantised = case(f"(x * 3).to({dtype})")
    assert quantised.right.dtype == dtype
    assert quantised.judge(quantised.right).reason is None
    assert quantised.judge(quantised.right).error == 0
    assert plainly_right([quantised.right], quantised.expected)


@both
def test_one_step_off_at_the_largest_elements_is_wrong(
    case: Callable[..., Case], dtype: torch.dtype
) -> None:
    quantised = case(f"(x * 3).to({dtype})")
    wrong = steps_away(quantised.right, -1, largest(quantised.right))
    comparison = quantised.judge(wrong)
    assert comparison.reason in WRONG
    assert not plainly_right([wrong], quantised.expected)
    assert comparison.worst is not None
    assert abs(comparison.worst.got) < abs(comparison.worst.expected)  # type: ignore[arg-type]
    counts = {b.up_to: b.elements for b in histogram(comparison.surveys)}
    assert sum(counts.values()) == quantised.right.numel()
    assert counts[10.0] == int(largest(quantised.right).sum())


@both
def test_one_step_off_everywhere_is_wrong(case: Callable[..., Case], dtype: torch.dtype) -> None:
    quantised = case(f"(x * 3).to({dtype})")
    everywhere = torch.ones_like(quantised.right, dtype=torch.bool)
    assert quantised.judge(steps_away(quantised.right, 1, everywhere)).reason in WRONG


def test_a_tie_may_be_rounded_either_way(case: Callable[..., Case]) -> None:
    """17 lies in the middle between 16 and 18; what is right depends on the last bit before."""
    tie = case("x.to(torch.float8_e4m3fn)", "torch.full((4, 64), 17.0)")
    assert tie.right.float().eq(16).all()
    assert tie.judge(torch.full((4, 64), 18.0).to(torch.float8_e4m3fn)).reason is None
    clear = case("x.to(torch.float8_e4m3fn)", "torch.full((4, 64), 16.5)")
    assert clear.judge(torch.full((4, 64), 18.0).to(torch.float8_e4m3fn)).reason in WRONG


@both
def test_a_result_that_is_not_a_number_is_named(
    case: Callable[..., Case], dtype: torch.dtype
) -> None:
    quantised = case(f"(x * 3).to({dtype})")
    spoilt = quantised.right
    spoilt.view(torch.uint8)[3, 5] = 0x7F
    assert not is_finite(spoilt)
    comparison = quantised.judge(spoilt)
    assert comparison.reason is Reason.NON_FINITE
    assert comparison.worst is not None
    assert comparison.worst.index == (3, 5)


@both
def test_poisoned_memory_is_not_a_number(case: Callable[..., Case], dtype: torch.dtype) -> None:
    quantised = case(f"(x * 3).to({dtype})")
    poison = torch.full((16, 64), 0xFF, dtype=torch.uint8).view(dtype)
    assert quantised.judge(poison).reason is Reason.NON_FINITE


@both
def test_where_the_reference_is_not_a_number_the_same_is_right(
    case: Callable[..., Case], dtype: torch.dtype
) -> None:
    undefined = case(f"x.log().to({dtype})")
    assert not is_finite(undefined.right)
    assert undefined.judge(undefined.right).reason is None
    finite = undefined.right.float().nan_to_num(1.0).to(dtype)
    assert undefined.judge(finite).reason is Reason.WRONG_VALUES


def test_a_coarse_result_does_not_loosen_what_is_asked_of_its_neighbour(
    case: Callable[..., Case],
) -> None:
    pair = case("((x * 3).to(torch.float8_e4m3fn), x.abs().amax(-1))")
    scales = pair.expected.reference.tensors[1]
    assert pair.judge(pair.right, scales).reason is None
    assert pair.judge(pair.right, scales * 1.01).reason in WRONG
