"""References that round to a grid: on a few elements they are a whole step away from the oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch

from kernel_smith.evaluation.judge.inputs.reference import InputSet, Reference
from kernel_smith.evaluation.judge.values.accuracy import Expected, expect
from kernel_smith.evaluation.judge.values.comparison import compare, is_accepted
from kernel_smith.evaluation.judge.values.jumps import Jumps
from kernel_smith.records import Reason, Task, Workload

STEP = 2.0**-9
GRID = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.round(x.sum(-1) * 512) / 512


def get_inputs():
    return [torch.randn(8000, 64)]
"""


class Case(NamedTuple):
    reference: Reference
    workload: Workload
    inputs: InputSet
    expected: Expected

    def reason(self, got: torch.Tensor) -> Reason | None:
        known = (self.expected, self.reference, self.workload, self.inputs)
        reason = compare([got], *known).reason
        assert is_accepted([got], *known) is (reason is None)
        return reason

    @property
    def right(self) -> torch.Tensor:
        return self.expected.reference.tensors[0]

    @property
    def jumps(self) -> Jumps:
        (jumps,) = self.expected.bounds.jumps or [None]
        assert jumps is not None
        return jumps


@pytest.fixture
def case(write_task: Callable[[str], Task]) -> Case:
    task = write_task(GRID)
    reference, (workload,) = Reference(task), task.workloads
    inputs = reference.draw(workload, 7)
    return Case(reference, workload, inputs, expect(reference, workload, inputs))


def test_a_step_on_a_few_elements_loosens_nothing_for_the_others(case: Case) -> None:
    assert case.expected.rtols == [4e-5]
    assert case.expected.reference_error < 1e-5
    assert 0 < case.jumps.share < 0.01
    assert case.reason(case.right) is None
    unrounded = case.inputs.tensors[0].double().sum(-1).float()
    assert float((unrounded - case.right).abs().max()) < 1.01 * STEP
    assert case.reason(unrounded) is not None


def test_sums_in_another_order_are_right(case: Case) -> None:
    x = case.inputs.tensors[0]
    columns = torch.zeros(len(x))
    for column in range(x.shape[1]):
        columns += x[:, column]
    other = torch.round(columns * 512) / 512
    assert not torch.equal(other, case.right)
    assert case.reason(other) is None


@pytest.mark.parametrize(
    ("share_of_most", "steps", "accepted"), [(0.9, 1, True), (1.1, 1, False), (0.9, 9, False)]
)
def test_about_as_many_may_be_a_step_off_as_the_references_own(
    case: Case, share_of_most: float, steps: int, accepted: bool
) -> None:
    got = case.expected.oracle[0].float()
    count = int(share_of_most * case.jumps.most(len(got)))
    got[:count] += steps * STEP
    assert (case.reason(got) is None) is accepted


def test_of_the_references_own_answer_twice_as_many_may_differ(case: Case) -> None:
    beside = case.expected.bounds.beside_reference(case.expected.reference_error)
    jumps = beside.jumps_of(0)
    assert jumps is not None
    assert jumps.share == 2 * case.jumps.share
    assert jumps.rtol > case.jumps.rtol


def test_where_most_elements_are_off_all_may_be(write_task: Callable[[str], Task]) -> None:
    task = write_task(GRID.replace("x.sum(-1) * 512) / 512", "x.half().float() * 1e7 - x * 1e7)"))
    reference, (workload,) = Reference(task), task.workloads
    expected = expect(reference, workload, reference.draw(workload, 7))
    assert expected.bounds.jumps == [None]
