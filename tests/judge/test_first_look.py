"""What a first call shows of a reference."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kernel_smith.evaluation.judge.inputs.budget import Budget
from kernel_smith.evaluation.judge.inputs.first_look import look_at
from kernel_smith.evaluation.judge.inputs.reference import Reference
from kernel_smith.records import Task

BUDGET = Budget(kept=256 << 20, at_once=16 << 20, free=1 << 30)
TASK = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        y = x * 2
        return {results}


def get_inputs():
    return [torch.randn(6, 8)]
"""


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ("y", set()),
        ("y, y.clone(), y.sum(1)", set()),
        ("y, y[1:2], y.sum(1)", {0, 1}),
        ("y[:3], y[3:]", set()),
        ("y[:, :4], y[:, 4:]", {0, 1}),
        ("y, y[:0], 3.0", set()),
        ("y, x, y", {0, 2}),
    ],
)
def test_which_results_share_memory(
    write_task: Callable[[str], Task], results: str, expected: set[int]
) -> None:
    task = write_task(TASK.format(results=results))
    look = look_at(Reference(task), task.workloads[0], BUDGET)
    assert look.overlapping == expected
