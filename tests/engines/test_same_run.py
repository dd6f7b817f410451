"""One evolution run, evaluated here and by a service; `test_ray_engine.py` has a cluster do it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from one_run import assert_a_run_succeeds

from kernel_smith.evaluation.engines import open_engine
from kernel_smith.evaluation.engines.base import Engine
from kernel_smith.evaluation.service.book import JobBook
from kernel_smith.evaluation.service.dispatcher import Dispatcher
from kernel_smith.evaluation.service.server import Service
from kernel_smith.records import Options, Task


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


@pytest.mark.slow
@pytest.mark.parametrize("opened", [here, by_a_service])
def test_a_run_does_not_care_who_evaluates(
    opened: object,
    lanes_share_the_judge: None,
    small_task: Task,
    honest_source: str,
    quick: Options,
    tmp_path: Path,
) -> None:
    with opened(tmp_path) as engine:  # type: ignore[operator]
        assert_a_run_succeeds(engine, small_task, honest_source, quick, tmp_path)
