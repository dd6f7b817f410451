"""Triton candidates on a machine without a GPU: interpreted, and judged for correctness alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.evaluation.judge.inputs.interpreting import interpretable_part
from kernel_smith.records import Candidate, Evaluation, Options, Reason, Stage, Task
from kernel_smith.records.prose import render
from kernel_smith.tasks import read_task

TASK = """
import torch

TASK = {"workloads": {
    "small": {"rows": 8, "columns": 50},
    "large": {"rows": 4096, "columns": 4096},
}}


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)


def get_inputs(rows, columns):
    return [torch.randn(rows, columns)]
"""

SOFTMAX = """
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + c, mask=c < columns, other=-float("inf"))
    v = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * columns + c, v / tl.sum(v, 0), mask=c < columns)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        block = triton.next_power_of_2(x.shape[1])
        softmax_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=block)
        return y
"""


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    path = tmp_path_factory.mktemp("interpreter") / "softmax_task.py"
    path.write_text(TASK)
    return read_task(path)


def judge(engine: LocalEngine, task: Task, source: str, screen: bool = True) -> Evaluation:
    candidate = Candidate(backend="triton", source=source, name="mine.py")
    return engine.evaluate(task, candidate, Options(seeds=2, screen=screen, interpret=True))


def test_a_right_candidate_is_ok_and_not_timed(engine: LocalEngine, task: Task) -> None:
    evaluation = judge(engine, task, SOFTMAX)
    assert evaluation.stage is Stage.OK, f"{evaluation.message} {evaluation.log}"
    assert evaluation.interpreted
    assert evaluation.timing is None
    assert evaluation.accuracy is not None
    assert evaluation.task_hash == task.content_hash
    assert evaluation.notes == ("too large for the interpreter: large",)
    assert "as interpreted on the CPU" in render(evaluation)


def test_a_wrong_candidate_is_told_the_element(engine: LocalEngine, task: Task) -> None:
    evaluation = judge(engine, task, SOFTMAX.replace("tl.exp(v - tl.max(v, 0))", "tl.exp2(v)"))
    assert evaluation.stage is Stage.INCORRECT
    assert evaluation.worst is not None
    assert evaluation.worst.workload == "small"


def test_an_error_in_a_kernel_is_told_with_its_line(engine: LocalEngine, task: Task) -> None:
    evaluation = judge(engine, task, SOFTMAX.replace("tl.max(v, 0)", "tl.no_such_function(v)"))
    assert evaluation.reason is Reason.EXCEPTION
    assert "no_such_function" in evaluation.log
    assert "mine.py" in evaluation.log


def test_a_kernel_whose_result_does_not_matter_is_a_decoy(engine: LocalEngine, task: Task) -> None:
    decoy = SOFTMAX.replace("return y", "return torch.exp(x.log_softmax(-1))")
    for screen in (True, False):
        assert judge(engine, task, decoy, screen).reason is Reason.DECOY_KERNEL


def test_a_task_without_small_workloads_is_refused(
    engine: LocalEngine, task: Task, tmp_path: Path
) -> None:
    path = tmp_path / "large_softmax.py"
    path.write_text(TASK.replace('"small": {"rows": 8,', '"small": {"rows": 80000,'))
    with pytest.raises(BadInput, match="small enough to be interpreted"):
        judge(engine, read_task(path), SOFTMAX)


TUNED = SOFTMAX.replace(
    "@triton.jit",
    """@triton.autotune(
    [triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})],
    key=["columns"],
    prune_configs_by={"early_config_prune": lambda found, args, **kw: found[1:]},
)
@triton.jit""",
).replace(", BLOCK=block)", ")")


def test_of_an_autotuners_configurations_the_first_that_fits_is_taken(
    engine: LocalEngine, task: Task
) -> None:
    """The one that is pruned would leave most columns out."""
    evaluation = judge(engine, task, TUNED)
    assert evaluation.stage is Stage.OK, f"{evaluation.message} {evaluation.log}"
    decoy = TUNED.replace("return y", "return torch.exp(x.log_softmax(-1))")
    assert judge(engine, task, decoy).reason is Reason.DECOY_KERNEL


WEIGHTED = """
import torch

TASK = {"workloads": {"small": {"width": 64}, "large": {"width": 2048}}}


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(width, width))

    def forward(self, x):
        return x @ self.weight


def get_inputs(width):
    return [torch.randn(1, width)]


def get_init_inputs(width):
    return [width]
"""


@pytest.mark.parametrize("drawn", ["torch.randn(width, width)", "torch.tensor([[0.5]]).item()"])
def test_parameters_count_for_what_is_too_large(
    write_task: Callable[..., Task], drawn: str
) -> None:
    """Also of a module that cannot be built without memory."""
    filled = WEIGHTED.replace("torch.randn(width, width)", f"torch.ones(width, width) * {drawn}")
    part = interpretable_part(write_task(filled))
    assert [workload.name for workload in part.workloads] == ["small"]
