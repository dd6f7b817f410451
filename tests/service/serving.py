"""A service for tests: a real web server on a free port, with an engine that makes things up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from kernel_smith.evaluation.engines.base import Evaluator
from kernel_smith.evaluation.service.auth import TokenFile
from kernel_smith.evaluation.service.book import BookLimits, JobBook
from kernel_smith.evaluation.service.dispatcher import Dispatcher
from kernel_smith.evaluation.service.server import Service
from kernel_smith.records import Candidate, JobRequest, Task
from kernel_smith.testing.trivial import TrivialEngine

LONG = 120.0  # seconds; what takes longer has failed, on a slow machine, too
TASK = Task(name="nothing", source="class Model: pass")


def request(number: int = 0, **fields: Any) -> JobRequest:
    return JobRequest(task=TASK, candidate=Candidate(source=f"# {number}"), **fields)


def body(number: int = 0, **fields: Any) -> dict[str, Any]:
    return request(number, **fields).model_dump(mode="json")


def until(happened: Callable[[], object]) -> None:
    deadline = time.monotonic() + LONG
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def http_client(**settings: Any) -> httpx.Client:
    """Reading the certificates that it needs not would take longer than most tests."""
    return httpx.Client(trust_env=False, verify=False, timeout=LONG, **settings)


class Served(NamedTuple):
    service: Service
    book: JobBook
    http: httpx.Client

    @property
    def url(self) -> str:
        return self.service.url


@contextmanager
def serving(
    folder: Path,
    engine: Evaluator | None = None,
    *,
    capacity: int = 1,
    limits: BookLimits | None = None,
    tokens: TokenFile | None = None,
    token: str | None = None,
    **settings: Any,
) -> Iterator[Served]:
    """`capacity=0` lets all jobs wait; `token` is what the client of the test sends."""
    engine = engine or TrivialEngine(lambda _: 2.0)
    with JobBook.open(folder / "jobs.sqlite", limits=limits or BookLimits()) as book:
        dispatcher = Dispatcher(book, engine, capacity=capacity)
        settings = {"drain_seconds": 5.0, **settings}
        service = Service(book, dispatcher, tokens=tokens, **settings)
        thread = threading.Thread(target=service.run)
        thread.start()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        with http_client(base_url=service.url, headers=headers) as http:
            try:
                yield Served(service, book, http)
            finally:
                service.stop()
                thread.join()
