"""Settings of the whole process that a task's file changes: others must not notice."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.evaluation.judge.inputs.reference import Reference
from kernel_smith.records import Candidate, Options, Task

WriteTask = Callable[..., Task]

SOURCE = """
import os
import warnings

import torch

{module}

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        {constructor}

    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    {get_inputs}
    return [torch.randn(3)]
"""
CHANGES = [
    "torch.set_grad_enabled(False)",
    "torch.use_deterministic_algorithms(True)",
    "torch.set_num_threads(torch.get_num_threads() + 1)",
    "torch.set_float32_matmul_precision('medium')",
    "torch.backends.cuda.matmul.allow_tf32 = True",
    "torch.backends.cuda.matmul.fp32_precision = 'tf32'",
    "torch.backends.cudnn.allow_tf32 = not torch.backends.cudnn.allow_tf32",
    "torch.backends.cudnn.benchmark = True",
    "warnings.simplefilter('error')",
    "os.chdir('/')",
]

PRODUCTS = (torch.backends.cuda.matmul, torch.backends.mkldnn.matmul)


def settings() -> list[object]:
    return [
        torch.is_grad_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_num_threads(),
        torch.get_float32_matmul_precision(),
        torch.backends.cuda.matmul.allow_tf32,
        *(each.fp32_precision in ("tf32", "bf16") for each in PRODUCTS),
        torch.backends.cudnn.allow_tf32,
        torch.backends.cudnn.benchmark,
        list(warnings.filters),
        os.getcwd(),
        torch.get_default_dtype(),
        torch.get_default_device(),
    ]


@pytest.fixture
def write(write_task: WriteTask) -> Callable[..., Task]:
    """Writes a task that does something in one place."""

    def make(**places: str) -> Task:
        return write_task(SOURCE.format(**{n: places.get(n, "pass") for n in PLACES}))

    return make


PLACES = ("module", "constructor", "get_inputs")


def run(task: Task) -> None:
    reference, (workload,) = Reference(task), task.workloads
    reference.call(workload, reference.draw(workload, 1))


@pytest.mark.parametrize("change", CHANGES)
def test_what_a_task_sets_holds_for_no_other(write: Callable[..., Task], change: str) -> None:
    before = settings()
    for place in PLACES:
        run(write(**{place: change}))
        assert settings() == before, place


@pytest.mark.parametrize("place", PLACES)
def test_another_default_type_is_refused_with_the_remedy(
    write: Callable[..., Task], place: str
) -> None:
    task = write(**{place: "torch.set_default_dtype(torch.float64)"})
    with pytest.raises(BadInput, match=r"default dtype .* to torch\.float64") as caught:
        run(task)
    assert "dtype=torch.float64" in caught.value.hint
    assert torch.get_default_dtype() is torch.float32


def test_another_default_device_is_refused(write: Callable[..., Task]) -> None:
    with pytest.raises(BadInput, match="default device") as caught:
        run(write(module="torch.set_default_device('meta')"))
    assert "leave that out" in caught.value.hint
    assert torch.get_default_device() == torch.device("cpu")


def test_a_judge_whose_folder_is_gone_goes_on(
    write: Callable[..., Task], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    task = write()
    monkeypatch.chdir(folder)
    folder.rmdir()
    run(task)


def test_settings_return_also_where_the_tasks_code_fails(write: Callable[..., Task]) -> None:
    before = settings()
    with pytest.raises(BadInput, match="ZeroDivisionError"):
        run(write(module="torch.set_grad_enabled(False); 1 / 0"))
    assert settings() == before


READER = """
import pathlib

import torch

{early}


class Model(torch.nn.Module):
    def forward(self, x):
        {late}
        return torch.relu(x) + 1


def get_inputs():
    return [torch.randn(64, 64)]
"""
FILE = "(pathlib.Path(__file__).parent / 'setting.txt').read_text()"


@pytest.mark.parametrize(("early", "late"), [(FILE, "pass"), ("pass", FILE)])
def test_what_only_the_judge_can_read_is_no_defect_of_ours(
    write_task: WriteTask,
    engine: LocalEngine,
    quick: Options,
    honest_source: str,
    early: str,
    late: str,
) -> None:
    task = write_task(READER.format(early=early, late=late))
    Path(str(task.path)).with_name("setting.txt").touch()
    with pytest.raises(BadInput, match="fails in the process that it is timed in") as caught:
        engine.evaluate(task, Candidate(source=honest_source), quick)
    assert "FileNotFoundError" in caught.value.what
    assert "none of your files" in caught.value.hint
