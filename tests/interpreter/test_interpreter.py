"""Triton candidates on a machine without a GPU: interpreted, and judged for correctness alone."""

from __future__ import annotations

import subprocess
import sys
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


CAST = """
import sys

import torch
import triton
import triton.language as tl

from kernel_smith.evaluation.sandbox.interpreter import interpret_kernels

interpret_kernels(disarmed=False)


@triton.jit
def cast(x, y, size, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < size)
    tl.store(y + i, v.to(y.dtype.element_ty), mask=i < size)


x = torch.cat([torch.randn(2000) * 2.0**k for k in (-12, 0, 3)])
x = torch.cat([x, torch.tensor([0.0, -0.0, 1.999, -31.9, 1e9, -1e9, float("nan")])])
for name in sys.argv[1:]:
    dtype = getattr(torch, name)
    y = torch.empty(x.numel(), dtype=dtype)
    cast[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    most = torch.finfo(dtype).max if dtype.itemsize == 1 else torch.inf
    right = x.clamp(-most, most).to(dtype)
    if (y.view(torch.int8) == right.view(torch.int8)).all():
        print(name)
"""


EXTREMES = """
import torch
from kernel_smith.evaluation.sandbox.interpreter import interpret_kernels
interpret_kernels(disarmed=False)
import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers


@triton.jit
def extremes(x, y, BLOCK: tl.constexpr):
    v = tl.load(x + tl.arange(0, 4)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :])
    tl.store(y + tl.arange(0, 4), triton_helpers.max2(v, 1))
    tl.store(y + 4 + tl.arange(0, 4), triton_helpers.min2(v, 1))
    tl.store(y + 8 + tl.arange(0, BLOCK), triton_helpers.max2(v, 0))


for dtype in (torch.float32, torch.float16, torch.int32):
    x = (torch.randn(4, 8) * 9).to(dtype)
    if dtype.is_floating_point:
        x[1, 3], x[2, 0] = float("nan"), float("-inf")
    y = torch.empty(16, dtype=dtype)
    extremes[(1,)](x, y, BLOCK=8)
    right = torch.cat([x.amax(1), x.amin(1), x.amax(0)])
    torch.testing.assert_close(y, right, rtol=0, atol=0, equal_nan=True)
    print(dtype)
"""


DTYPES = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float16"]
# Both in one process, whose imports take longer than they do.
RUN_EACH = """
import runpy, sys, traceback
sys.argv, scripts = sys.argv[:1] + sys.argv[3:], sys.argv[1:3]
for script in scripts:
    try:
        runpy.run_path(script)
    except Exception:
        traceback.print_exc()
    print("end")
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], list[str], str]:
    """What `CAST` and `EXTREMES` print, and what both complain of."""
    folder = tmp_path_factory.mktemp("scripts")
    scripts = {"cast.py": CAST, "extremes.py": EXTREMES}
    for name, text in scripts.items():
        (folder / name).write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", RUN_EACH, *(folder / name for name in scripts), *DTYPES],
        capture_output=True,
        text=True,
    )
    cast, extremes, _ = done.stdout.split("end\n")
    return cast.split(), extremes.split(), done.stderr


@pytest.mark.slow
def test_few_bits_are_rounded_as_a_gpu_does(printed: tuple[list[str], list[str], str]) -> None:
    cast, _, complaints = printed
    assert cast == DTYPES, complaints


@pytest.mark.slow
def test_extremes_of_the_compilers_helpers_are_torchs(
    printed: tuple[list[str], list[str], str],
) -> None:
    """Whether numpy finds them at once or the interpreter compares element by element."""
    _, extremes, complaints = printed
    assert len(extremes) == 3, complaints
