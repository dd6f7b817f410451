"""A profiler looks at the best of a run that finds nothing better, where the user wants it."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from kernel_smith.errors import MissingPrerequisite
from kernel_smith.records import Budget, Candidate, Counted, NsightKernel, RunConfig, Task
from kernel_smith.records.prose import render
from kernel_smith.runs.run import Run, fold
from kernel_smith.store import Store
from kernel_smith.testing.numbers import Nudger, program
from kernel_smith.testing.trivial import TrivialEngine

SEEN = (NsightKernel(name="rows", memory_share=0.41, occupancy=0.25),)


class Watching(TrivialEngine):
    """Nothing is faster than the first program. `trouble`: why its profiler cannot look."""

    def __init__(self, trouble: Exception | None = None) -> None:
        super().__init__(lambda candidate: 2.0 if candidate == program(1.0) else 1.0)
        self._trouble = trouble
        self.looks: list[tuple[str, str]] = []

    def counters(
        self, task: Task, candidate: Candidate, workload: str
    ) -> Future[tuple[NsightKernel, ...]]:
        self.looks.append((candidate.content_hash, workload))
        done: Future[tuple[NsightKernel, ...]] = Future()
        if self._trouble is not None:
            done.set_exception(self._trouble)
        else:
            done.set_result(SEEN)
        return done


def searched(folder: Path, task: Task, engine: TrivialEngine, **changes: Any) -> list[Counted]:
    config = RunConfig(
        backend="cpp", proposers={"nudger": 1.0}, budget=Budget(evaluations=30), **changes
    )
    start = {"programs": [program(1.0).model_dump(mode="json")]}
    config = config.model_copy(update={"settings": {"start": start}})
    with Store.open(folder / "r.sqlite", create=True) as store:
        with Run.start(store, task, config) as run:
            run.search(engine, workers={"nudger": Nudger()})
        events = [event for _, event in store.events(run.state.run)]
        best = fold(store, run.state.run).evaluated[program(1.0).content_hash]
        found = [event for event in events if isinstance(event, Counted)]
        assert best.evaluation.nsight == (SEEN if found else ())
        if found:
            assert "warps in use 25%" in render(best.evaluation)
    return found


def test_the_best_is_looked_at_once_after_ten_evaluations_without_a_better_one(
    tmp_path: Path, task: Task
) -> None:
    engine = Watching()
    (seen,) = searched(tmp_path, task, engine, counters=True)
    assert seen.candidate == program(1.0).content_hash and seen.nsight == SEEN
    assert engine.looks == [(program(1.0).content_hash, "default")]


def test_nobody_looks_unless_it_is_wanted(tmp_path: Path, task: Task) -> None:
    """What is looked at runs without the sandbox."""
    engine = Watching()
    assert not searched(tmp_path, task, engine) and not engine.looks


@pytest.mark.parametrize(
    "engine",
    [
        TrivialEngine(lambda _: 1.0),
        Watching(MissingPrerequisite("Nsight Compute (ncu) is not installed", hint="install it")),
    ],
)
def test_a_run_goes_on_where_there_is_no_profiler(
    tmp_path: Path, task: Task, engine: TrivialEngine
) -> None:
    assert not searched(tmp_path, task, engine, counters=True)
    assert len(getattr(engine, "looks", [1])) == 1
