"""Who is sent where: idle devices first, tasks that are ready, and GPUs for those who need one."""

from __future__ import annotations

from collections import deque

import pytest

from kernel_smith.evaluation.engines.ray_cluster import Place
from kernel_smith.evaluation.engines.ray_queue import Asked, Device, next_match
from kernel_smith.records import Candidate, Options, Task


def asked(task: str = "a", backend: str = "cpp", options: Options | None = None) -> Asked:
    candidate = Candidate(backend=backend, source="class ModelNew: ...")
    named = Task(name=task, source="class Model: ...")
    return Asked(named, candidate, options or Options(), None)


def device(*ready: str, gpu: bool = False, lanes: int = 1, running: int = 0) -> Device:
    made = Device(Place("node", 0, gpu, "host"), None, lanes)
    made.running = {asked() for _ in range(running)}
    for task in ready:
        made.note_use(asked(task).task_hash)
    return made


def match(
    waiting: list[Asked], devices: list[Device], gpus_exist: bool = False
) -> tuple[Asked, Device] | None:
    return next_match(deque(waiting), devices, gpus_exist)


def test_the_device_that_has_the_task_ready_is_preferred() -> None:
    job, others, ready = asked("a"), device("b"), device("a")
    assert match([job], [others, ready]) == (job, ready)


def test_a_device_prefers_a_job_of_a_task_that_it_has_ready() -> None:
    first, second, only = asked("b"), asked("a"), device("a")
    assert match([first, second], [only]) == (second, only)


def test_an_idle_device_is_preferred_to_one_that_is_ready_and_busy() -> None:
    job, busy, idle = asked("a"), device("a", lanes=2, running=1), device()
    assert match([job], [busy, idle]) == (job, idle)


def test_a_device_gets_no_more_than_it_has_lanes() -> None:
    assert match([asked()], [device(lanes=2, running=2)]) is None
    assert match([asked()], [device(lanes=0)]) is None


def test_kernels_for_gpus_wait_for_one_where_there_are_any() -> None:
    job, plain, gpu = asked(backend="triton"), device(), device(gpu=True)
    assert match([job], [plain], gpus_exist=True) is None
    assert match([job], [plain, gpu], gpus_exist=True) == (job, gpu)
    assert match([job], [plain], gpus_exist=False) == (job, plain)


def test_kernels_that_are_to_be_interpreted_need_no_gpu() -> None:
    job, plain = asked(backend="triton", options=Options(interpret=True)), device()
    assert match([job], [plain], gpus_exist=True) == (job, plain)


def test_whoever_needs_no_gpu_leaves_it_to_others() -> None:
    job, gpu, plain = asked(), device(gpu=True), device()
    assert match([job], [gpu, plain], gpus_exist=True) == (job, plain)
    assert match([job], [gpu], gpus_exist=True) == (job, gpu)


@pytest.mark.parametrize("count", [1, 200])
def test_jobs_that_wait_for_a_gpu_hold_up_nobody_else(count: int) -> None:
    job, plain = asked(), device()
    waiting = [asked(backend="triton") for _ in range(count)]
    assert match([*waiting, job], [plain], gpus_exist=True) == (job, plain)


def test_a_backend_that_nobody_knows_goes_to_any_judge() -> None:
    job, plain = asked(backend="abacus"), device()
    assert match([job], [plain], gpus_exist=True) == (job, plain)
