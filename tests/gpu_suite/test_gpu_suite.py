"""Every task of the GPU suite is well formed, fits into memory and can tell right from wrong.

Its small workloads run on the CPU, with the judge's own admission. The large ones are measured on
tensors without memory; on a GPU they run as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
import torch

from kernel_smith.evaluation.judge.inputs.admission import Found, examine
from kernel_smith.evaluation.judge.inputs.first_look import look_at
from kernel_smith.evaluation.judge.inputs.reference import (
    InputSet,
    Reference,
    Result,
    secret_seed,
)
from kernel_smith.evaluation.judge.platform import device_state, host_memory
from kernel_smith.records import Precision, Task, Workload
from kernel_smith.tasks import builtin_tasks

TASKS = builtin_tasks("gpu")

LIMIT = 1_500_000_000
SMALL_LIMIT = 4_000_000
WIDEST_WITHOUT_LIBRARY = {
    "activation",
    "normalisation",
    "positional",
    "quantisation",
    "reduction",
    "softmax",
}


def findings(task: Task, workload: Workload, device: str) -> list[Found]:
    reference = Reference(task, device)
    budget = (device_state if device == "cuda" else host_memory).budget()
    return examine(reference, workload, budget, look_at(reference, workload, budget)).found


class Run(NamedTuple):
    """One call of a reference, and what it held on to."""

    inputs: InputSet
    result: Result
    state: list[torch.Tensor]

    @property
    def bytes(self) -> int:
        tensors = [*self.inputs.tensors, *self.result.tensors, *self.state]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    @property
    def answer(self) -> list[tuple[torch.Size, torch.dtype]]:
        return [(tensor.shape, tensor.dtype) for tensor in self.result.tensors]


def run(task: Task, workload: Workload, device: str) -> Run:
    """The reference on inputs of its own; on the device `meta` nothing is computed."""
    with torch.device(device):
        reference = Reference(task, device)
        state = list(reference.model(workload).state_dict().values())
        inputs = reference.draw(workload, secret_seed())
        return Run(inputs, reference.call(workload, inputs), state)


def small(task: Task) -> Workload:
    return next(workload for workload in task.workloads if workload.name == "small")


def sizes(workload: Workload) -> list[int]:
    return [value for value in workload.params.values() if isinstance(value, int)]


each_task = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
# Their small workloads take as long as those of all other tasks together: a cross entropy, a norm
# and a maximum, of which there are others.
LONG = {"chosen_log_probability", "clip_gradient_norm", "greedy_token"}
each_task_or_its_like = pytest.mark.parametrize(
    "task",
    [
        pytest.param(task, id=task.name, marks=pytest.mark.sweep if task.name in LONG else ())
        for task in TASKS
    ],
)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small work is slower on several threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_the_suite_is_broad() -> None:
    assert len(TASKS) >= 40
    assert len({task.family for task in TASKS}) >= 12
    dtypes = {w.params.get("dtype", "float32") for task in TASKS for w in task.workloads}
    assert dtypes == {"float32", "float16", "bfloat16"}


@each_task
def test_a_task_describes_itself_and_has_a_small_workload_and_larger_ones(task: Task) -> None:
    assert task.family != "unsorted"
    assert task.description.endswith(".")
    assert 2 <= len(task.workloads) <= 4
    assert small(task)


@each_task
def test_a_large_workload_has_an_awkward_size(task: Task) -> None:
    large = [workload for workload in task.workloads if workload.name != "small"]
    assert any(size > 16 and size % 16 for workload in large for size in sizes(workload))


@each_task
def test_only_products_may_be_coarse_and_only_simple_work_must_be_authored(task: Task) -> None:
    assert task.precision in (Precision.STRICT, Precision.TF32)
    if not task.library_calls:
        assert task.precision is Precision.STRICT
        assert task.family in WIDEST_WITHOUT_LIBRARY


@each_task
def test_every_workload_fits_into_memory(task: Task) -> None:
    for workload in task.workloads:
        limit = SMALL_LIMIT if workload.name == "small" else LIMIT
        assert run(task, workload, "meta").bytes < limit


@each_task
def test_the_small_workload_runs_on_a_cpu(task: Task) -> None:
    done = run(task, small(task), "cpu")
    assert done.answer == run(task, small(task), "meta").answer
    assert all(bool(tensor.isfinite().all()) for tensor in done.result.tensors)


@pytest.mark.slow
@each_task_or_its_like
def test_the_small_workload_tells_right_from_wrong(task: Task) -> None:
    assert findings(task, small(task), "cpu") == []


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
@each_task
def test_every_workload_runs_on_a_gpu_and_tells_right_from_wrong(task: Task) -> None:
    with torch.device("cuda"):
        for workload in task.workloads:
            assert findings(task, workload, "cuda") == []
            torch.cuda.empty_cache()
