"""Several lanes: verdicts as from one judge, in an order that spares the judges work."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import Any, cast

import pytest

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.evaluation.engines import pool as pool_module
from kernel_smith.evaluation.engines.pool import LocalPool
from kernel_smith.records import Candidate, Evaluation, Options, Reason, Task

WriteTask = Callable[..., Task]
PATIENCE = 120.0


class Stage:
    """Where stand-ins for engines leave their traces. What is called `hold` waits to be let go."""

    def __init__(self) -> None:
        self.played: list[str] = []
        self.closed = 0
        self.holding = threading.Event()
        self.let_go = threading.Event()

    def engine(self, cache: object) -> StandIn:
        return StandIn(self)


class StandIn:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def evaluate(
        self, task: Task, candidate: Candidate, options: Options, beside: Candidate | None
    ) -> Any:
        name = f"{task.name} {candidate.source}"
        self._stage.played.append(name)
        if candidate.source == "hold":
            self._stage.holding.set()
            assert self._stage.let_go.wait(PATIENCE)
        if candidate.source == "fail":
            raise BadInput("a bad task", hint="mend it")
        return name

    def close(self) -> None:
        self._stage.closed += 1


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    stage = Stage()
    monkeypatch.setattr(pool_module, "LocalEngine", stage.engine)
    yield stage
    stage.let_go.set()


class Lane:
    """A pool of one lane, asked by names alone."""

    def __init__(self, pool: LocalPool, task: Task) -> None:
        self.pool = pool
        self._task = task

    def submit(self, task: str, what: str) -> Future[Evaluation]:
        named = self._task.model_copy(update={"name": task})
        return self.pool.submit(named, Candidate(backend="cpp", source=what))

    def play(self, task: str, what: str) -> Any:
        return self.submit(task, what).result(PATIENCE)


@pytest.fixture
def lane(stage: Stage, small_task: Task) -> Iterator[Lane]:
    with LocalPool(lanes=1) as pool:
        yield Lane(pool, small_task)
        stage.let_go.set()


def hold(lane: Lane, stage: Stage, task: str) -> Future[Evaluation]:
    """Keep the lane busy until it is let go."""
    future = lane.submit(task, "hold")
    assert stage.holding.wait(PATIENCE)
    return future


# ---------------------------------------------------------------- order


def test_candidates_of_a_task_that_is_ready_go_first(lane: Lane, stage: Stage) -> None:
    hold(lane, stage, "a")
    waiting = [lane.submit(t, w) for t, w in (("b", "1"), ("a", "2"), ("b", "3"), ("a", "4"))]
    stage.let_go.set()
    for future in waiting:
        future.result(PATIENCE)
    assert stage.played == ["a hold", "a 2", "a 4", "b 1", "b 3"]


def test_tasks_that_were_used_last_count_as_ready(lane: Lane, stage: Stage) -> None:
    """Of four tasks, three are kept: not the one that was used longest ago."""
    for task in ("a", "b", "c", "a", "d"):
        lane.play(task, "0")
    hold(lane, stage, "d")
    waiting = [lane.submit(task, "1") for task in ("b", "a")]
    stage.let_go.set()
    for future in waiting:
        future.result(PATIENCE)
    assert stage.played[-2:] == ["a 1", "b 1"]


def test_a_lane_does_not_look_ahead_for_ever(lane: Lane, stage: Stage) -> None:
    hold(lane, stage, "a")
    waiting = [lane.submit("b", str(number)) for number in range(64)] + [lane.submit("a", "late")]
    stage.let_go.set()
    for future in waiting:
        future.result(PATIENCE)
    assert stage.played[1] == "b 0"


def test_lanes_work_side_by_side(stage: Stage, small_task: Task) -> None:
    with LocalPool(lanes=2) as pool:
        lane = Lane(pool, small_task)
        held = hold(lane, stage, "a")
        assert lane.play("a", "beside") == "a beside"
        assert not held.done()
        stage.let_go.set()
    assert stage.closed == 2


# ---------------------------------------------------------------- failing, cancelling, closing


def test_an_error_reaches_who_asked_and_the_lane_goes_on(lane: Lane) -> None:
    with pytest.raises(BadInput, match="a bad task"):
        lane.play("a", "fail")
    assert lane.play("a", "next") == "a next"


def test_what_waits_can_be_cancelled_and_what_runs_cannot(lane: Lane, stage: Stage) -> None:
    running = hold(lane, stage, "a")
    cancelled, kept = lane.submit("a", "cancelled"), lane.submit("a", "kept")
    assert cancelled.cancel()
    assert not running.cancel()
    stage.let_go.set()
    assert cast(Any, running.result(PATIENCE)) == "a hold"
    kept.result(PATIENCE)
    assert stage.played == ["a hold", "a kept"]


def test_closing_finishes_what_runs_and_cancels_what_waits(lane: Lane, stage: Stage) -> None:
    running = hold(lane, stage, "a")
    waiting = [lane.submit("a", "1"), lane.submit("b", "2")]
    closing = threading.Thread(target=lane.pool.close)
    closing.start()
    for future in waiting:
        with pytest.raises(CancelledError):
            future.result(PATIENCE)
    assert not running.done()
    stage.let_go.set()
    closing.join(PATIENCE)
    assert cast(Any, running.result(0)) == "a hold"
    assert stage.played == ["a hold"]
    assert stage.closed == 1


def test_a_closed_pool_takes_nothing_more(lane: Lane) -> None:
    lane.pool.close()
    with pytest.raises(RuntimeError, match="closed"):
        lane.submit("a", "1")


# ---------------------------------------------------------------- real judges


def test_two_lanes_give_the_verdicts_of_one_engine(
    engine: LocalEngine,
    borrowing: type[LocalEngine],
    object_cache: Path,
    small_task: Task,
    write_task: WriteTask,
    honest_source: str,
    wrong_source: str,
    quick: Options,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KERNEL_SMITH_CACHE", str(object_cache))
    # Two judges, one of which is there already.
    kinds = iter([borrowing, LocalEngine])
    monkeypatch.setattr(pool_module, "LocalEngine", lambda cache: next(kinds)(cache))
    crashing = honest_source.replace("y = torch.empty_like(x)", "raise KeyError('y')")
    sources = [honest_source, wrong_source, crashing, "not even Python", honest_source]
    candidates = [Candidate(backend="cpp", source=source) for source in sources]
    bad_task = write_task(small_task.source.replace("[torch.randn(32, 64)]", "[1 / 0]"), "bad")
    with LocalPool(lanes=2) as pool:
        futures = [pool.submit(small_task, candidate, quick) for candidate in candidates]
        bad = pool.submit(bad_task, candidates[0], quick)
        found = [future.result(PATIENCE) for future in futures]
        with pytest.raises(BadInput, match="division by zero"):
            bad.result(PATIENCE)
    expected = [engine.evaluate(small_task, candidate, quick) for candidate in candidates]
    assert [(e.stage, e.reason) for e in found] == [(e.stage, e.reason) for e in expected]
    assert [e.reason for e in found][:3] == [None, Reason.WRONG_VALUES, Reason.EXCEPTION]
    assert found[0].timing is not None


def test_a_pool_says_how_it_is() -> None:
    pool = LocalPool(2)
    assert pool.capacity() == 2
    assert pool.health() == {"ready": True, "lanes": 2, "waiting": 0}
    pool.close()
    assert not pool.health()["ready"]
