"""Simulated devices: as many at a time as there are, the same result each time, and no secret."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError, Future

import pytest

from kernel_smith.errors import BadInput, InternalError
from kernel_smith.evaluation.engines.base import Engine
from kernel_smith.evaluation.engines.simulated import SimulatedEngine
from kernel_smith.records import Candidate, Evaluation, Task, Workload

PATIENCE = 120.0
LONG = 1000.0  # seconds that no test waits for
TASK = Task(
    name="sample",
    source="class Model: ...",
    workloads=(Workload(name="small"), Workload(name="large", weight=2.0)),
)


def candidate(number: int) -> Candidate:
    return Candidate(source=f"# {number}")


def submit_many(engine: SimulatedEngine, count: int) -> list[Future[Evaluation]]:
    return [engine.submit(TASK, candidate(number)) for number in range(count)]


def test_records_say_that_they_are_simulated_and_read_back() -> None:
    with SimulatedEngine(200, seconds=0.01) as engine:
        found = [future.result(PATIENCE) for future in submit_many(engine, 200)]
    for number, evaluation in enumerate(found):
        assert evaluation.candidate_hash == candidate(number).content_hash
        assert evaluation.task_hash == TASK.content_hash
        assert evaluation.environment.processor == "simulated"
        assert evaluation.made_up
        assert Evaluation.model_validate_json(evaluation.model_dump_json()) == evaluation
    assert len({evaluation.reason for evaluation in found}) == 6


def test_a_candidate_ends_the_same_way_each_time() -> None:
    with SimulatedEngine(20, seconds=0.0) as engine:
        first, second = (
            [future.result(PATIENCE) for future in submit_many(engine, 20)] for _ in range(2)
        )
    assert [(e.reason, e.timing) for e in first] == [(e.reason, e.timing) for e in second]


def test_all_devices_are_used_and_the_rest_waits() -> None:
    engine: Engine = SimulatedEngine(1000, seconds=LONG)
    futures = [engine.submit(TASK, candidate(number)) for number in range(1003)]
    assert engine.capacity() == 1000
    assert engine.health() == {"ready": True, "lanes": 1000, "waiting": 3, "busy": 1000}
    assert [future.running() for future in futures[-4:]] == [True, False, False, False]
    assert not futures[0].cancel()
    assert futures[-1].cancel()


def test_thousands_of_devices_share_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are started are counted: how many there are depends on other tests' as well, some
    of which end meanwhile."""
    started: list[str] = []
    start = threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        started.append(thread.name)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", noted)
    with SimulatedEngine(10_000, seconds=0.05) as engine:
        for future in submit_many(engine, 3000):
            future.result(PATIENCE)
    assert started == ["simulated devices"]


def test_what_waits_gets_the_device_that_is_free_first() -> None:
    ended: list[int] = []
    with SimulatedEngine(1, seconds=0.005) as engine:
        futures = submit_many(engine, 10)
        for number, future in enumerate(futures):
            future.add_done_callback(lambda _, number=number: ended.append(number))
        assert futures[5].cancel()
        for future in futures[6:]:
            future.result(PATIENCE)
    assert ended == [5, 0, 1, 2, 3, 4, 6, 7, 8, 9]


def test_closing_finishes_what_was_begun_and_cancels_what_waits() -> None:
    engine = SimulatedEngine(2, seconds=0.2)
    futures = submit_many(engine, 4)
    engine.close()
    assert [future.cancelled() for future in futures] == [False, False, True, True]
    assert all(future.result(0).made_up for future in futures[:2])
    assert not engine.health()["ready"]
    with pytest.raises(RuntimeError, match="closed"):
        engine.submit(TASK, candidate(9))


def test_who_leaves_in_a_hurry_does_not_wait() -> None:
    futures: list[Future[Evaluation]] = []

    def leave() -> None:
        with SimulatedEngine(1, seconds=LONG) as engine:
            futures.extend(submit_many(engine, 2))
            raise KeyError

    with pytest.raises(KeyError):
        leave()
    with pytest.raises(InternalError, match="abandoned"):
        futures[0].result(0)
    with pytest.raises(CancelledError):
        futures[1].result(0)


@pytest.mark.parametrize(("devices", "seconds"), [(0, 1.0), (1, -1.0), (1, float("nan"))])
def test_devices_that_cannot_be_are_bad_input(devices: int, seconds: float) -> None:
    with pytest.raises(BadInput, match="simulated"):
        SimulatedEngine(devices, seconds)
