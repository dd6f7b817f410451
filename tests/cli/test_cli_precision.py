"""`--precision`: what a file says or leaves open, decided where it is used."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import kernel_smith
from kernel_smith import api
from kernel_smith.cli import seed
from kernel_smith.cli.serve import _allowed
from kernel_smith.errors import BadInput
from kernel_smith.evaluation import engines
from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.proposers.seed import Seed
from kernel_smith.records import Budget, Precision, Task
from kernel_smith.runs.run import fold
from kernel_smith.store import Store
from kernel_smith.tasks import find_task
from kernel_smith.testing.trivial import TrivialEngine

Cli = Callable[..., Any]

PROBLEM = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, channels: int):
        super(Model, self).__init__()
        self.scale = nn.Parameter(torch.rand(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale

rows = 8
channels = 64

def get_inputs():
    return [torch.rand(rows, channels)]

def get_init_inputs():
    return [channels]
"""

COARSE = '''
import torch

from kernel_smith.inline import cpp

kernels = cpp(r"""
#include <cstdint>
#include <cstring>

static float rounded(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    bits = (bits + 0x8000u) & 0xffff0000u;
    std::memcpy(&x, &bits, 4);
    return x;
}

extern "C" void scale(const float* x, const float* by, float* y, int64_t rows, int64_t channels) {
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < channels; ++c)
            y[r * channels + c] = rounded(x[r * channels + c]) * rounded(by[c]);
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.rand(channels))

    def forward(self, x):
        y = torch.empty_like(x)
        kernels.scale(x, self.scale, y, x.shape[0], x.shape[1])
        return y
'''

PRETENDED = ("--engine", "simulated:1:0.01")
SAVED = ("--store", "r.sqlite")


@pytest.fixture
def problem(cli: Cli, tmp_path: Path) -> str:
    """A problem file that says nothing of precision, and `coarse.py`, which rounds to bfloat16."""
    (tmp_path / "7_Scale.py").write_text(PROBLEM)
    (tmp_path / "coarse.py").write_text(COARSE)
    return "7_Scale.py"


@pytest.fixture
def all_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs ask an engine that finds every program right and twice as fast as PyTorch."""

    def open_engine(*_: object) -> nullcontext[TrivialEngine]:
        return nullcontext(TrivialEngine(lambda candidate: 2.0))

    monkeypatch.setattr(engines, "open_engine", open_engine)
    monkeypatch.setattr(api, "open_engine", open_engine)


def hash_of(path: str, precision: Precision) -> str:
    return find_task(path, precision).content_hash


def following(text: str) -> list[str]:
    """The words of the first command that is suggested."""
    line = next(line for line in text.splitlines() if line.startswith("next: "))
    return shlex.split(line.removeprefix("next: ").partition("  #")[0])


# ---------------------------------------------------------------- each command


def test_the_judge_allows_what_was_asked_for_and_nothing_coarser(
    cli: Cli, shared_judge: None, problem: str
) -> None:
    command = ("evaluate", problem, "coarse.py", "--seeds", 1, "--max-seconds", 0.2)
    strict = cli(*command)
    assert strict.code == 1
    assert strict.out.splitlines()[0] == "7_Scale.py <- coarse.py (precision strict)"
    assert "incorrect: precision" in strict.out
    coarse = cli(*command, "--precision", "bf16")
    assert coarse.out.splitlines()[0] == "7_Scale.py <- coarse.py (precision bf16)"
    assert "incorrect" not in coarse.out, "the cached answer for another precision is not given"
    assert "--precision bf16" in shlex.join(following(coarse.out))
    assert cli(*command, "--json").json["task_hash"] == hash_of(problem, Precision.STRICT)


def test_evaluate_sends_it_to_another_engine(cli: Cli, problem: str) -> None:
    command = ("evaluate", problem, "coarse.py", *PRETENDED, "--json", "--quiet")
    for precision in Precision:
        done = cli(*command, "--precision", precision.value)
        assert done.json["task_hash"] == hash_of(problem, precision)


def test_it_overrides_what_the_file_says(cli: Cli, problem: str, tmp_path: Path) -> None:
    (tmp_path / "stated.py").write_text(f"TASK = {{'precision': 'fp16'}}\n{PROBLEM}")
    command = ("evaluate", "stated.py", "coarse.py", *PRETENDED, "--json", "--quiet")
    assert cli(*command).json["task_hash"] == hash_of("stated.py", Precision.FP16)
    done = cli(*command, "--precision", "strict")
    assert done.json["task_hash"] == hash_of("stated.py", Precision.STRICT)


def test_tasks_check_examines_the_task_with_it(
    cli: Cli, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Task] = []
    monkeypatch.setattr(
        LocalEngine, "examine", lambda self, task, *_, **__: asked.append(task) or []
    )
    done = cli("tasks", "check", problem, "--precision", "tf32", "--quiet")
    assert done.code == 0, done.err
    assert [task.precision for task in asked] == [Precision.TF32]
    assert "7_Scale: admitted (precision tf32)" in done.out
    assert following(done.out)[-3:] == ["CANDIDATE", "--precision", "tf32"]
    assert "--precision" not in cli("tasks", "check", problem, "--quiet").out


def test_seed_compiles_the_task_with_it(
    cli: Cli, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Task] = []

    def make_seed(task: Task, *_: object) -> Seed:
        asked.append(task)
        workloads = ("default",)
        return Seed(task="t", backend="cpp", source="#", workloads=workloads, kernels=1, torch="2")

    monkeypatch.setattr(seed, "make_seed", make_seed)
    done = cli("seed", problem, "--precision", "tf32", "--quiet")
    assert [task.precision for task in asked] == [Precision.TF32]
    assert following(done.out)[-2:] == ["--precision", "tf32"]


@pytest.mark.parametrize("value", ["fp32", "", "TF32 "])
@pytest.mark.parametrize("command", ["evaluate", "optimize", "seed", "tasks check"])
def test_a_precision_that_does_not_exist_is_refused(
    cli: Cli, problem: str, command: str, value: str
) -> None:
    done = cli(*command.split(), problem, "--precision", value)
    done.complains(2, f"no precision is called {value!r}", "`strict`, `tf32`", "write `strict`")
    assert not Path(".kernel-smith").exists()


# ---------------------------------------------------------------- runs


def test_a_run_keeps_its_precision_whatever_becomes_of_the_file(
    cli: Cli, all_accepted: None, problem: str
) -> None:
    begun = ("--proposer", "tuner", "--start", "coarse.py", "--precision", "bf16")
    done = cli("optimize", problem, *begun, "--evaluations", 1, *SAVED, "-q")
    assert done.code == 0, done.err
    asked_for = hash_of(problem, Precision.BF16)
    Path(problem).write_text("nothing of use")
    assert cli("resume", "latest", *SAVED, "--evaluations", 2, "-q").code == 0
    Path("told.py").write_text(COARSE.replace("r < rows", "r != rows"))
    told = cli("tell", "latest", "--candidate", "told.py", *SAVED, "--json", "-q")
    assert told.json["evaluation"]["task_hash"] == asked_for
    with Store.open(Path("r.sqlite")) as store:
        state = fold(store, store.find_run("latest"))
    assert state.task.precision is Precision.BF16
    evaluated = [step.evaluation for step in state.steps.values() if step.evaluation]
    assert len(evaluated) > 1
    assert {each.task_hash for each in evaluated} == {asked_for}


def test_whoever_reads_of_a_run_reads_of_its_precision(
    cli: Cli, all_accepted: None, problem: str
) -> None:
    for path in (problem, "row_softmax"):
        begun = ("--proposer", "tuner", "--start", "coarse.py", "--precision", "bf16")
        done = cli("optimize", path, *begun, "--evaluations", 1, *SAVED, "-q")
        name, precision = following(done.out)[2], following(done.out)[4:6]
        assert (Path(name).name, precision) == (path, ["--precision", "bf16"])
        shown = cli("runs", "show", "latest", *SAVED)
        assert f"task       {Path(path).stem}, precision bf16, backend cpp" in shown.out
        assert cli("runs", "show", "latest", *SAVED, "--json").json["precision"] == "bf16"
        assert "(precision bf16)." in cli("ask", "latest", *SAVED).out
        assert following(cli("runs", "best", "latest", *SAVED).out)[-2:] == precision


def test_a_run_started_from_python_takes_it_too(
    all_accepted: None, problem: str, tmp_path: Path
) -> None:
    settings: Any = {"starts": [COARSE], "store": tmp_path / "p.sqlite"}
    limit = Budget(evaluations=1)
    found = kernel_smith.optimize(problem, precision="bf16", budget=limit, **settings)
    assert found.evaluation.task_hash == hash_of(problem, Precision.BF16)
    with pytest.raises(BadInput, match="no precision is called 'fp32'"):
        kernel_smith.optimize(find_task(problem), precision="fp32", **settings)


# ---------------------------------------------------------------- services


def test_a_service_that_evaluates_a_task_does_so_in_every_precision(problem: str) -> None:
    allowed = _allowed([problem])
    assert allowed == {hash_of(problem, precision) for precision in Precision}
