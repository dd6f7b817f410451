"""Whether inputs are small is learnt without the memory that large ones would take, and without
PyTorch's compiler."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from kernel_smith.evaluation.judge.inputs.lid import Exceeded, Lid

MEBIBYTE = 1 << 20
FAR_TOO_MUCH = 1 << 50  # elements: no machine has the memory

SMALL: dict[str, Callable[[], object]] = {
    "drawn": lambda: torch.randn(32, 64),
    "computed": lambda: torch.randn(32, 64) * 2 + torch.rand(64),
    "whole numbers": lambda: torch.randint(0, 30_000, (8, 128)),
    "a number that is large itself": lambda: torch.full((4,), 1e30),
    "ranges": lambda: torch.arange(0, 1000, 3).flip(0),
    "views": lambda: torch.zeros(1, 64).expand(1 << 12, 64).transpose(0, 1),
    "in place": lambda: torch.empty(64).uniform_(-1, 1).add_(1),
    "sorted": lambda: torch.rand(64).sort(),
    "masked": lambda: torch.ones(16, 16).tril().bool(),
}

LARGE: dict[str, Callable[[], object]] = {
    "drawn": lambda: torch.randn(FAR_TOO_MUCH),
    "filled": lambda: torch.zeros(1 << 25, 1 << 25),
    "a range": lambda: torch.arange(FAR_TOO_MUCH),
    "stretched": lambda: (
        torch.ones(1 << 15, 1) * torch.ones(1, 1 << 15) * torch.ones(1 << 20, 1, 1)
    ),
    "repeated": lambda: torch.zeros(64).repeat(1 << 22, 1 << 22),
    "a view that is written down": lambda: torch.zeros(1).expand(FAR_TOO_MUCH).clone(),
    "a product": lambda: torch.zeros(1 << 15, 2) @ torch.zeros(2, 1 << 35),
    "little, many times": lambda: [torch.zeros(1000) for _ in range(100)],
}


@pytest.mark.parametrize("make", SMALL.values(), ids=SMALL)
def test_what_is_small_is_made_as_without_a_lid(make: Callable[[], object]) -> None:
    torch.manual_seed(0)
    plain = make()
    torch.manual_seed(0)
    with Lid(MEBIBYTE) as lid:
        made = make()
    assert not lid.exceeded
    torch.testing.assert_close(made, plain, rtol=0, atol=0)


@pytest.mark.parametrize("make", LARGE.values(), ids=LARGE)
def test_what_is_large_is_not_even_begun(make: Callable[[], object]) -> None:
    with pytest.raises(Exceeded), Lid(MEBIBYTE) as lid:
        make()
    assert lid.exceeded


TASK = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs(n=64):
    return [torch.randn(n) * 2]
"""

FORESEE = """
import sys
from pathlib import Path
import torch
from kernel_smith.evaluation.judge.inputs.footprint import foresee
from kernel_smith.evaluation.sandbox.kernel_events import profiling
from kernel_smith.tasks import read_task

task = read_task(Path(sys.argv[1]))
assert foresee(task, task.workloads[0], 1 << 20) is None
print("looked at", *sorted({"sympy", "torch._dynamo"} & set(sys.modules)))
with profiling():
    torch.ones(4) + 1
print("profiled", *sorted({"torch._dynamo"} & set(sys.modules)))
"""


@pytest.mark.slow
def test_a_small_task_is_looked_at_and_profiled_without_the_compiler(tmp_path: Path) -> None:
    """To import it would take seconds in every process."""
    file = tmp_path / "doubled.py"
    file.write_text(TASK)
    done = subprocess.run(
        [sys.executable, "-c", FORESEE, file], check=True, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == ["looked at", "profiled"]
