"""One evolution run, evaluated here, by a service, and by a Ray cluster."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("ray")

from ray_nodes import nodes

from kernel_smith.evaluation.engines import open_engine
from kernel_smith.evaluation.engines.base import Engine
from kernel_smith.evaluation.service.book import JobBook
from kernel_smith.evaluation.service.dispatcher import Dispatcher
from kernel_smith.evaluation.service.server import Service
from kernel_smith.evolution.crew import begin_with, first_programs, proposers_of
from kernel_smith.evolution.presets import find_preset
from kernel_smith.evolution.run import Run
from kernel_smith.records import Budget, Candidate, Options, Stage, Task
from kernel_smith.store import Store

EVALUATIONS = 4


@contextmanager
def here(folder: Path) -> Iterator[Engine]:
    with open_engine(None) as engine:
        yield engine


@contextmanager
def by_a_service(folder: Path) -> Iterator[Engine]:
    with JobBook.open(folder / "jobs.sqlite") as book, open_engine(None) as judges:
        service = Service(book, Dispatcher(book, judges, capacity=judges.capacity))
        thread = threading.Thread(target=service.run)
        thread.start()
        try:
            with open_engine(service.url) as engine:
                yield engine
        finally:
            service.stop()
            thread.join()


@contextmanager
def by_a_cluster(folder: Path) -> Iterator[Engine]:
    with nodes() as cluster:
        cluster.add("evaluating")
        with open_engine(cluster.address) as engine:
            yield engine


@pytest.mark.slow
@pytest.mark.parametrize("opened", [here, by_a_service, by_a_cluster])
def test_a_run_does_not_care_who_evaluates(
    opened: object,
    small_task: Task,
    honest_source: str,
    quick: Options,
    object_cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KERNEL_SMITH_CACHE", str(object_cache))
    preset = find_preset("embedded", "cpp").model_copy(
        update={
            "budget": Budget(evaluations=EVALUATIONS),
            "options": quick,
            "proposers": {"mutator": 1.0},
        }
    )
    start = Candidate(source=honest_source, name="start.py")
    config = begin_with(preset, small_task, [start], with_seed=False)
    with (
        Store.open(tmp_path / "runs.sqlite", create=True) as store,
        Run.start(store, small_task, config) as run,
        opened(tmp_path) as engine,  # type: ignore[operator]
        proposers_of(config) as proposers,
    ):
        loop = run.evolve(proposers, engine, lambda *_: None)
        why = loop.run(first_programs(run.state))
        state = run.state
    assert why == f"the budget of {EVALUATIONS} evaluations is spent"
    assert state.best is not None
    ended = [known.evaluation for known in state.evaluated.values()]
    assert len(ended) == EVALUATIONS
    assert state.evaluated[start.content_hash].evaluation.stage is Stage.OK
    assert sum(each.ok for each in ended) > EVALUATIONS // 2, [each.message for each in ended]
