"""Seeds of big problems: one workload at a time, and a clear error where memory runs out."""

from __future__ import annotations

import contextlib
import errno
import pkgutil
import signal
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch

from kernel_smith.errors import BadInput, InternalError, Interrupted, MissingPrerequisite
from kernel_smith.proposers.seed import Seed, SeedMaker, make, make_seed
from kernel_smith.proposers.seed.host_memory import host_room
from kernel_smith.proposers.seed.inside import comparison, memory
from kernel_smith.proposers.seed.inside.memory import first_that_fits, has_room_for, short_of
from kernel_smith.proposers.seed.inside.needs import measure
from kernel_smith.proposers.seed.inside.task_module import TaskModule, load_task
from kernel_smith.proposers.seed.shortage import Needs, Room, not_enough_for, shortage
from kernel_smith.records import Task

# The compiler warns about its own affairs.
pytestmark = pytest.mark.filterwarnings("ignore")

ADDED = """
import torch

TASK = {"workloads": {"wide": {"columns": 64}, "wider": {"columns": 128}}}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("shift", torch.ones(1))

    def forward(self, x):
        return torch.relu(x) + self.shift


def get_inputs(columns=64):
    return [torch.randn(10, columns)]
"""

# As on a machine with little memory: the task itself sets the limit, in the seed's process.
LIMITED = """
import resource

import torch

for row in open("/proc/self/status"):
    if row.startswith("VmData"):
        limit = 1024 * int(row.split()[1]) + {extra}
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


TASK = {{"workloads": {workloads}}}


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs(elements):
    return [torch.zeros(elements)]
"""

KILLED = """
import os
import signal

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1


def get_inputs():
    os.kill(os.getpid(), signal.SIGKILL)
"""

GPU_FULL = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 6.00 GiB.")
HOST_FULL = RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 64")

Patch = pytest.MonkeyPatch


def build(task: Task, *workloads: str) -> Seed:
    """Make a seed in this process, which saves the start of another."""
    # Importing the compiler warns too, which must not happen while tests are collected.
    from kernel_smith.proposers.seed.inside.build import build_seed

    return build_seed(task, "cpu", workloads, lambda what: None)


def failing(error: Exception, times: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that fails before it works."""
    left = [error] * times

    def call(*arguments: Any, **named: Any) -> Any:
        if left:
            raise left.pop()
        return function(*arguments, **named)

    return call


@pytest.mark.parametrize(
    ("error", "device"),
    [
        (GPU_FULL, "cuda"),
        (HOST_FULL, "cpu"),
        (MemoryError(), "cpu"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "cpu"),
        (RuntimeError("CUDA error: out of memory\\nCUDA kernel errors might be"), "cuda"),
        (RuntimeError("Triton Error [CUDA]: out of memory"), "cuda"),
        (RuntimeError("CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`"), "cuda"),
        (RuntimeError("g++: fatal error: Killed signal terminated program cc1plus"), "cpu"),
        (RuntimeError("out of resource: shared memory, Required: 1"), None),
        (ValueError("out of memory"), None),
        (OSError(errno.ENOENT, "no such file"), None),
    ],
)
def test_want_of_memory_is_known_by_its_error(error: Exception, device: str | None) -> None:
    assert short_of(error) == device
    wrapped = RuntimeError("the compiler failed")
    wrapped.__cause__ = error
    assert short_of(wrapped) == device


def test_less_and_less_is_tried_as_long_as_memory_is_short() -> None:
    done: list[str] = []
    steps = [failing(GPU_FULL, 1, lambda: "first"), lambda: "second"]
    assert first_that_fits(steps, lambda: done.append("made room")) == "second"
    assert done == ["made room"]
    with pytest.raises(ValueError, match="broken"):
        first_that_fits([failing(ValueError("broken"), 1, list), list], lambda: done.append("more"))
    with pytest.raises(torch.OutOfMemoryError):
        first_that_fits([failing(GPU_FULL, 2, list)] * 2, lambda: None)
    assert done == ["made room"]


def test_the_error_has_the_figures_and_says_whom_to_blame() -> None:
    needs = Needs(parameters=0, inputs=6_442_450_944, outputs=6_442_450_944)
    what = not_enough_for("workload default", "cuda")
    held = shortage(what, "cuda", Room("H200", 3_000_000_000, 150_000_000_000), needs)
    assert held.exit_code == 3
    assert "the GPU has not enough memory for workload default" in held.what
    assert "inputs take 6.4 GB, its result 6.4 GB" in held.what
    assert "3.0 GB of 150.0 GB (H200) were free for it, and others hold 147.0 GB" in held.what
    assert "nvidia-smi" in held.hint
    small = shortage(what, "cuda", Room("T4", 15_900_000_000, 16_000_000_000), needs)
    assert "others" not in small.what
    assert "GPU with more memory" in small.hint and "--workload" in small.hint
    unknown = shortage(what, "cuda", None, None)
    assert "cannot be told" in unknown.what and "nvidia-smi" in unknown.hint


def test_sizes_are_found_without_memory(write_task: Callable[..., Task]) -> None:
    task = write_task(ADDED.replace("10, columns", "1 << 20, 1 << 20"))
    assert measure(load_task(task), task.workloads[0]) == Needs(4, 4 << 40, 4 << 40)


def test_sizes_that_cannot_be_found_are_left_out(write_task: Callable[..., Task]) -> None:
    task = write_task(ADDED.replace("torch.relu(x)", "torch.relu(x) * x.sum().item()"))
    module = load_task(task)
    assert measure(module, task.workloads[0]) == Needs(4, 10 * 64 * 4, None)
    del module.scope["get_inputs"]
    assert measure(module, task.workloads[0]) is None


STEPS = {
    "drawing": "kernel_smith.proposers.seed.inside.task_module.TaskModule.make_inputs",
    "exporting": "torch.export.export",
    "compiling": "kernel_smith.proposers.seed.inside.compiler.compile_fx",
    "loading": "kernel_smith.proposers.seed.inside.check._load",
    "keeping the result": "kernel_smith.proposers.seed.inside.check._keep",
    "running the seed": "kernel_smith.proposers.seed.inside.workbench.Workbench.make_seed_model",
    "comparing": "kernel_smith.proposers.seed.inside.check.difference",
}


SWEPT = ("exporting", "keeping the result", "running the seed")


@pytest.mark.slow
@pytest.mark.parametrize(
    "step",
    [pytest.param(step, marks=pytest.mark.sweep if step in SWEPT else ()) for step in STEPS],
)
def test_a_full_device_is_an_error_that_users_can_mend(
    compiler: None, write_task: Callable[..., Task], monkeypatch: Patch, step: str
) -> None:
    task = write_task(ADDED)
    error = GPU_FULL if step != "loading" else HOST_FULL
    monkeypatch.setattr(STEPS[step], failing(error, 2, list))
    with pytest.raises(MissingPrerequisite, match="has not enough memory for") as caught:
        build(task, "wide")
    if step != "loading":
        assert "the GPU" in caught.value.what
    if step not in ("loading", "drawing"):
        assert "for workload wide; its inputs take 0.00256 MB" in caught.value.what
        assert "its result 0.00256 MB" in caught.value.what


def test_a_reference_that_finds_no_room_is_not_to_blame(
    compiler: None, write_task: Callable[..., Task]
) -> None:
    raising = "if not torch.compiler.is_exporting():\n            raise torch.OutOfMemoryError()"
    task = write_task(ADDED.replace("return torch.relu", f"{raising}\n        return torch.relu"))
    with pytest.raises(MissingPrerequisite, match="the GPU has not enough memory") as caught:
        build(task, "wide")
    assert "its inputs take" in caught.value.what and "result" not in caught.value.what


@pytest.mark.parametrize(
    "step",
    [
        *("compiling", "comparing"),
        pytest.param("exporting", marks=pytest.mark.sweep),
        pytest.param("running the seed", marks=pytest.mark.sweep),
    ],
)
def test_a_device_that_is_full_for_a_moment_does_no_harm(
    compiler: None, write_task: Callable[..., Task], monkeypatch: Patch, step: str
) -> None:
    task = write_task(ADDED)
    works = pkgutil.resolve_name(STEPS[step])
    monkeypatch.setattr(STEPS[step], failing(GPU_FULL, 1, works))
    assert build(task, "wide").compared == {"wide": 1.0}


@pytest.mark.slow
def test_without_room_for_two_results_a_sample_is_compared(
    compiler: None, write_task: Callable[..., Task], monkeypatch: Patch
) -> None:
    monkeypatch.setattr(comparison, "_SAMPLE_BLOCK_ELEMENTS", 8)
    monkeypatch.setattr(comparison, "_SAMPLE_BLOCKS", 8)
    task = write_task(ADDED)
    whole = build(task, "wide", "wider")
    assert whole.compared == {"wide": 1.0, "wider": 1.0} and not whole.notes
    # Enough for what else is there; the second workload's result is too big.
    monkeypatch.setattr(memory, "room_on", lambda device: Room("RAM", 3000, 3000))
    monkeypatch.setattr(memory, "resident", lambda: 0)
    seed = build(task, "wide", "wider")
    assert seed.compared == {"wide": 1.0, "wider": 0.05}
    assert len(seed.notes) == 1 and "on workload wider 5.0% of the elements" in seed.notes[0]
    monkeypatch.setattr(comparison, "compare", lambda *_: comparison.Tally(64, 60, 0))
    with pytest.raises(BadInput, match="differs from the reference on wider"):
        build(task, "wide", "wider")


def test_a_workload_is_gone_before_the_next_is_drawn(
    compiler: None, write_task: Callable[..., Task], monkeypatch: Patch
) -> None:
    drawn: list[weakref.ref[torch.Tensor]] = []
    make_inputs = TaskModule.make_inputs

    def noted(self: TaskModule, *arguments: Any) -> list[Any]:
        assert all(each() is None for each in drawn)
        inputs = make_inputs(self, *arguments)
        drawn.append(weakref.ref(inputs[0]))
        return inputs

    monkeypatch.setattr(TaskModule, "make_inputs", noted)
    task = write_task(ADDED)
    build(task, "wide")
    assert len(drawn) == 1, "the compiler's inputs serve for the comparison, too"
    build(task, "wide", "wider")
    assert len(drawn) == 4
    assert all(each() is None for each in drawn)


# The input of the big one takes 268 MB, and so does its result.
SMALL, BIG = {"small": {"elements": 1 << 10}}, {"big": {"elements": 1 << 26}}


def limited(megabytes: int, workloads: dict[str, dict[str, int]]) -> str:
    """A task, and the limit of its process."""
    return LIMITED.format(extra=megabytes * 1_000_000, workloads=workloads)


@pytest.mark.slow
def test_a_machine_without_enough_memory_is_named(write_task: Callable[..., Task]) -> None:
    """In the seed's own process, under a limit that the task sets."""
    with pytest.raises(MissingPrerequisite, match="this machine has not enough memory") as caught:
        make_seed(write_task(limited(400, BIG)), "cpu")
    assert "its inputs take 0.3 GB, its result 0.3 GB" in caught.value.what
    assert "(RAM) were free for it" in caught.value.what


@pytest.mark.slow
def test_a_machine_without_memory_for_two_results_makes_the_seed(
    write_task: Callable[..., Task],
) -> None:
    """Under one limit, that of the big workload is too much and that of the small one is not."""
    seed = make_seed(write_task(limited(730, SMALL | BIG)), "cpu")
    assert seed.compared == {"small": 1.0, "big": 0.25}


@pytest.mark.slow
def test_a_process_that_is_killed_is_not_called_a_defect(write_task: Callable[..., Task]) -> None:
    with pytest.raises(MissingPrerequisite, match=r"was killed \(SIGKILL\)") as caught:
        make_seed(write_task(KILLED), "cpu")
    assert "--workload" in caught.value.hint
    ends = KILLED.replace("os.kill(os.getpid(), signal.SIGKILL)", "os._exit(3)")
    with contextlib.closing(SeedMaker(write_task(ends), "cpu")) as maker:
        for _ in range(2):
            with pytest.raises(BadInput, match=r"task's code ends the process \(exit code 3\)"):
                maker.make()


def test_a_process_that_aborts_for_want_of_memory_is_not_called_a_defect(
    small_task: Task,
) -> None:
    log = "terminate called after throwing an instance of 'std::bad_alloc'"
    assert isinstance(make._died(small_task, -6, log, by_defect=False), MissingPrerequisite)
    crashed = make._died(small_task, -11, "Segmentation fault", by_defect=False)
    assert isinstance(crashed, InternalError)


def test_a_compiler_that_somebody_ends_is_no_defect(small_task: Task) -> None:
    """Schedulers and containers send SIGTERM to all processes of a job at once."""
    ended = make._died(small_task, -signal.SIGTERM, "", by_defect=False)
    assert isinstance(ended, Interrupted) and "SIGTERM" in ended.what


def test_the_machine_has_some_room() -> None:
    room = host_room()
    assert room is not None
    assert 0 < room.available <= room.total
    assert has_room_for(1, "cpu") and not has_room_for(room.total + 1, "cpu")


def test_a_seed_for_the_cpu_needs_a_compiler(
    write_task: Callable[..., Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "nonsense")
    with pytest.raises(MissingPrerequisite, match="nonsense") as caught:
        make_seed(write_task(ADDED), "cpu")
    assert "g++" in caught.value.hint
