"""The processes that a bench keeps, and when it replaces them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from kernel_smith.errors import MissingPrerequisite
from kernel_smith.evaluation.judge.inputs.footprint import Footprint
from kernel_smith.evaluation.judge.platform import host_memory
from kernel_smith.evaluation.judge.platform.bench import Bench
from kernel_smith.evaluation.judge.platform.host import HostPlatform
from kernel_smith.evaluation.judge.processes.pool import CoreSet, ProcessPool
from kernel_smith.evaluation.judge.server import Server
from kernel_smith.evaluation.sandbox.wire import WireClosed
from kernel_smith.records import Options, Task

COMPILED = SimpleNamespace(
    child=SimpleNamespace(trusted=True),
    enter=lambda *args, **manner: None,
    bind=lambda sets: None,
    run=lambda: None,
    unbind=lambda: None,
    close=lambda: None,
)


@pytest.mark.parametrize("others", [0, 16], ids=["alone", "beside small ones"])
def test_a_task_that_would_fill_the_machine_is_refused_with_the_figures(
    small_task: Task, processes: ProcessPool, monkeypatch: pytest.MonkeyPatch, others: int
) -> None:
    bench = Bench(small_task, HostPlatform(processes, CoreSet.choose(None)), seeds=1)
    monkeypatch.setattr(host_memory, "available", lambda: 16)
    monkeypatch.setattr(bench.platform.claims(), "of_others", lambda: others)
    with pytest.raises(MissingPrerequisite, match="GiB are available; workload") as caught:
        bench.look(small_task.workloads[0])
    assert "smaller workloads" in str(caught.value.hint)
    bench.close()


def test_examining_a_task_fills_no_machine_either(
    small_task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[dict[str, Any]] = []
    request = {"op": "examine", "task": small_task.model_dump(mode="json")}
    received = iter([request])

    def receive() -> dict[str, Any]:
        if (next_one := next(received, None)) is None:
            raise WireClosed
        return next_one

    wire: Any = SimpleNamespace(receive=receive, send=answers.append, fileno=lambda: 0)
    unused: Any = SimpleNamespace(close=lambda: None)
    monkeypatch.setattr(host_memory, "available", lambda: 16)
    monkeypatch.setattr(host_memory.claims(), "of_others", lambda: 0)
    Server(wire, unused).serve()
    assert answers[0]["kind"] == "NotEnoughMemory"
    assert "GiB are available" in answers[0]["what"]


def test_while_others_evaluate_it_waits_for_their_memory(
    small_task: Task, processes: ProcessPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(small_task, HostPlatform(processes, CoreSet.choose(None)), seeds=1)
    found = [16, 16, 1 << 40]
    monkeypatch.setattr(host_memory, "available", lambda: found.pop(0) if found else 1 << 40)
    monkeypatch.setattr(bench.platform.claims(), "of_others", lambda: 1 << 30)
    assert bench.look(small_task.workloads[0]).footprint.inputs > 0
    assert not found
    bench.close()


@pytest.mark.parametrize("is_large", [True, False])
def test_what_large_calls_took_goes_back_when_an_evaluation_is_over(
    small_task: Task, processes: ProcessPool, monkeypatch: pytest.MonkeyPatch, is_large: bool
) -> None:
    """Of small ones it is kept for the next evaluation, which would fetch it again."""
    bench = Bench(small_task, HostPlatform(processes, CoreSet.choose(None)), seeds=1)
    (workload,) = small_task.workloads
    given_back: list[bool] = []
    monkeypatch.setattr(bench.reference, "give_memory_back", lambda: given_back.append(True))
    monkeypatch.setitem(bench._pools, workload.name, cast(Any, SimpleNamespace(is_large=is_large)))
    kept = weakref.ref(bench.reference.draw_to_keep(workload, 1))
    bench.give_memory_back()
    assert given_back == [True] * is_large
    assert kept() is None
    bench.close()
    assert given_back == [True] * (is_large + 1)


def test_to_ask_the_reference_uses_no_secret_set_up(
    small_task: Task, processes: ProcessPool
) -> None:
    bench = Bench(small_task, HostPlatform(processes, CoreSet.choose(None)), seeds=2)
    assert not any(check.used for check in bench.prepare(small_task.workloads[0]).pool.checks)
    bench.close()


@pytest.fixture
def started(processes: ProcessPool, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every process that was asked for."""
    children: list[object] = []
    start = processes.start

    def counting(*args: object, **kwargs: object) -> object:
        children.append(start(*args, **kwargs))  # type: ignore[arg-type]
        return children[-1]

    monkeypatch.setattr(processes, "start", counting)
    return children


def test_a_reference_that_has_timed_is_replaced_by_a_young_one(
    processes: ProcessPool, started: list[object], small_task: Task
) -> None:
    bench = Bench(small_task, HostPlatform(processes, CoreSet.choose(None)), seeds=1)
    (workload,) = small_task.workloads
    (first,) = bench.baselines(workload, Options(), 1)
    bench.renew_reference()
    bench.renew_reference()  # one that has timed nothing is young enough
    (second,) = bench.baselines(workload, Options(), 1)
    assert second.child is not first.child
    assert len(started) == 2
    bench.close()


def test_a_reference_that_nobody_asks_for_is_not_started_again_and_again(
    processes: ProcessPool,
    started: list[object],
    small_task: Task,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(small_task, HostPlatform(processes, CoreSet.choose(None)), seeds=1)
    (workload,) = small_task.workloads
    bench.prepare(workload)
    monkeypatch.setattr(bench, "baseline", lambda name: COMPILED)
    for _ in range(3):
        bench.baselines(workload, Options(baselines=("compile",)), 1)
        bench.renew_reference()
    assert len(started) == 2
    bench.close()


def test_statistics_that_the_reference_goes_on_gathering_are_no_modified_parameters(
    processes: ProcessPool, write_task: Callable[..., Task]
) -> None:
    task = write_task(
        """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(x)

def get_inputs():
    return [torch.randn(8, 4)]
"""
    )
    bench = Bench(task, HostPlatform(processes, CoreSet.choose(None)), seeds=1)
    (workload,) = task.workloads
    bench.prepare(workload)
    before = bench.reference.statistics(workload)["norm.running_mean"].clone()
    bench.reference.call(workload, bench.reference.draw(workload, 1))
    assert not torch.equal(before, bench.reference.statistics(workload)["norm.running_mean"])
    assert bench.eager().parameters_unchanged()
    bench.close()


@pytest.mark.parametrize(("seconds", "longest"), [(1e-6, 8), (9e-5, 8), (1e-4, 4), (1.0, 4)])
def test_calls_get_more_memory_where_a_batch_is_short_all_the_same(
    small_task: Task,
    processes: ProcessPool,
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
    longest: int,
) -> None:
    platform = HostPlatform(processes, CoreSet.choose(None))
    monkeypatch.setattr(platform, "arena_bytes", lambda: 256 << 20)
    monkeypatch.setattr(platform, "short_batch", 4e-4)
    footprint = Footprint(inputs=32 << 20, outputs=32 << 20, parameters=1 << 30, peak=2 << 30)
    bench = Bench(small_task, platform, seeds=1)
    assert bench._capacity(cast(Any, SimpleNamespace(footprint=footprint)), seconds) == longest
    bench.close()
