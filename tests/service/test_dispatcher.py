"""The dispatcher keeps its engine busy, and survives whatever engine and book do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from job_samples import OTHER_TASK, TASK, evaluation, request

from kernel_smith.errors import BadInput, InternalError, MissingPrerequisite
from kernel_smith.evaluation.engines.base import Evaluator
from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.evaluation.service import dispatcher as module
from kernel_smith.evaluation.service.book import JobBook
from kernel_smith.evaluation.service.dispatcher import Dispatcher
from kernel_smith.records import Candidate, Evaluation, Options, Task
from kernel_smith.records.job import Job, JobState
from kernel_smith.store.faults import StoreError
from kernel_smith.testing.trivial import TrivialEngine

LONG = 120.0  # seconds; nothing here takes that long


class ManualEngine:
    """Evaluates when it is told to."""

    def __init__(self) -> None:
        self.asked: list[tuple[Task, Candidate, Future[Evaluation]]] = []
        self._changed = threading.Condition()

    def submit(
        self, task: Task, candidate: Candidate, options: Options, /, **more: Any
    ) -> Future[Evaluation]:
        future: Future[Evaluation] = Future()
        with self._changed:
            self.asked.append((task, candidate, future))
            self._changed.notify_all()
        return future

    def wait_for(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.asked) >= count, LONG)

    def answer(self, index: int) -> None:
        task, candidate, future = self.asked[index]
        future.set_result(made_up(task, candidate, 2.0))


class RaisingEngine:
    def __init__(self, error: BaseException, *, at_once: bool = False) -> None:
        self._error = error
        self._at_once = at_once

    def submit(
        self, task: Task, candidate: Candidate, options: Options, /, **more: Any
    ) -> Future[Evaluation]:
        if self._at_once:
            raise self._error
        future: Future[Evaluation] = Future()
        future.set_exception(self._error)
        return future


class MixedUpEngine:
    """Answers with the evaluation of another candidate."""

    def submit(
        self, task: Task, candidate: Candidate, options: Options, /, **more: Any
    ) -> Future[Evaluation]:
        future: Future[Evaluation] = Future()
        future.set_result(evaluation(request(99)))
        return future


@pytest.fixture
def book(tmp_path: Path) -> Iterator[JobBook]:
    with JobBook.open(tmp_path / "jobs.sqlite") as book:
        yield book


@contextmanager
def dispatching(book: JobBook, engine: Evaluator, capacity: int = 2) -> Iterator[Dispatcher]:
    dispatcher = Dispatcher(book, engine, capacity=capacity)
    dispatcher.start()
    try:
        yield dispatcher
    finally:
        dispatcher.close()


def ended(book: JobBook, number: int, client: str = "a") -> Job:
    return book.wait(client, book.submit(client, request(number)).id, LONG)


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONG
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_every_client_gets_the_evaluations_of_its_own_candidates(book: JobBook) -> None:
    before = book.submit("a", request(1000))
    with dispatching(book, TrivialEngine(lambda _: 2.0, seconds=0.001, lanes=3), 3) as dispatcher:
        jobs = {
            (client, number): book.submit(client, request(number)).id
            for number in range(20)
            for client in "abc"
        }
        for (client, number), identity in jobs.items():
            found = book.wait(client, identity, LONG).evaluation
            assert found is not None
            assert found.candidate_hash == request(number).candidate.content_hash
        assert book.wait("a", before.id, LONG).state is JobState.DONE
        assert all(job.attempts == 1 for client in "abc" for job in book.jobs(client))
        eventually(lambda: dispatcher.health()["running"] == 0)
        assert dispatcher.health()["alive"]
        assert dispatcher.health()["last_finished_at"] is not None
    assert not dispatcher.health()["alive"]


def test_no_more_jobs_are_under_way_than_fit_and_a_free_place_is_filled(book: JobBook) -> None:
    engine = ManualEngine()
    with dispatching(book, engine, capacity=2) as dispatcher:
        book.submit_many("a", [request(number) for number in range(4)])
        engine.wait_for(2)
        assert book.counts()[JobState.RUNNING] == 2
        engine.answer(1)
        engine.wait_for(3)
        assert book.counts() == dict.fromkeys(JobState, 0) | {
            JobState.WAITING: 1,
            JobState.RUNNING: 2,
            JobState.DONE: 1,
        }
        assert dispatcher.health()["running"] == 2


def test_a_task_that_the_engine_had_before_is_preferred(book: JobBook) -> None:
    engine = ManualEngine()
    book.submit_many("a", [request(1), request(2, task=OTHER_TASK), request(3)])
    with dispatching(book, engine, capacity=1):
        for index in range(3):
            engine.wait_for(index + 1)
            engine.answer(index)
        assert [task.name for task, _, _ in engine.asked] == [TASK.name, TASK.name, OTHER_TASK.name]


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize(
    ("error", "kind", "what", "hint"),
    [
        (BadInput("no such task", hint="look"), "bad-input", "no such task", "look"),
        (MissingPrerequisite("no g++", hint="get it"), "missing-prerequisite", "no g++", "get it"),
        (InternalError("the judge died"), "internal", "the judge died", ""),
        (ValueError("odd \udc80 byte"), "internal", "ValueError: odd ? byte", ""),
    ],
)
def test_what_an_engine_raises_becomes_the_error_of_the_job(
    book: JobBook,
    error: Exception,
    kind: str,
    what: str,
    hint: str,
    at_once: bool,
) -> None:
    finished: list[tuple[str, float]] = []
    with dispatching(book, RaisingEngine(error, at_once=at_once)) as dispatcher:
        dispatcher.on_finished = lambda kind, seconds: finished.append((kind, seconds))
        for number in range(3):
            found = ended(book, number).error
            assert found is not None
            assert (found.kind, found.what, found.hint) == (kind, what, hint)
        eventually(lambda: len(finished) == 3)
        assert {name for name, _ in finished} == {kind}
        assert all(seconds >= 0 for _, seconds in finished)
        in_a_row = 3 if kind == "internal" else 0
        assert dispatcher.health()["consecutive_internal_errors"] == in_a_row
        assert dispatcher.health()["alive"]


def test_even_an_exit_in_an_engine_does_not_end_the_thread(book: JobBook) -> None:
    with dispatching(book, RaisingEngine(SystemExit(3))) as dispatcher:
        assert ended(book, 1).state is JobState.FAILED
        assert dispatcher.health()["alive"]


def test_an_evaluation_of_another_candidate_reaches_nobody(book: JobBook) -> None:
    with dispatching(book, MixedUpEngine()):
        job = ended(book, 1)
    assert job.error is not None and job.error.kind == "internal"


def test_whoever_counts_may_fail(book: JobBook) -> None:
    with dispatching(book, TrivialEngine(lambda _: 2.0)) as dispatcher:
        dispatcher.on_finished = lambda kind, seconds: 1 / 0
        assert [ended(book, number).state for number in range(3)] == [JobState.DONE] * 3


def test_the_answer_of_a_cancelled_job_is_counted_as_cancelled(book: JobBook) -> None:
    engine, kinds = ManualEngine(), list[str]()
    with dispatching(book, engine) as dispatcher:
        dispatcher.on_finished = lambda kind, seconds: kinds.append(kind)
        job = book.submit("a", request(1))
        engine.wait_for(1)
        book.cancel("a", job.id)
        engine.answer(0)
        assert book.wait("a", job.id, LONG).state is JobState.CANCELLED
        eventually(lambda: kinds == ["cancelled"])


def test_what_the_engine_cancels_is_tried_again(book: JobBook) -> None:
    engine = ManualEngine()
    with dispatching(book, engine):
        job = book.submit("a", request(1))
        engine.wait_for(1)
        engine.asked[0][2].cancel()
        engine.wait_for(2)
        engine.answer(1)
        done = book.wait("a", job.id, LONG)
        assert (done.state, done.attempts) == (JobState.DONE, 2)


def test_an_answer_outlives_a_book_that_fails_for_a_while(
    book: JobBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SECONDS_AFTER_TROUBLE", 0.01)
    finish, failures = book.finish, iter(range(3))

    def failing(job: str, found: Evaluation) -> bool:
        if next(failures, None) is not None:
            raise StoreError("the disk is full", hint="make room")
        return finish(job, found)

    monkeypatch.setattr(book, "finish", failing)
    engine = TrivialEngine(lambda _: 2.0)
    with dispatching(book, engine):
        assert ended(book, 1).attempts == 1
    assert len(engine.evaluated) == 1


def test_draining_waits_for_what_is_under_way_and_begins_nothing_more(book: JobBook) -> None:
    engine = ManualEngine()
    with dispatching(book, engine, capacity=1) as dispatcher:
        first, second = book.submit_many("a", [request(1), request(2)])
        engine.wait_for(1)
        later = threading.Timer(0.05, engine.answer, (0,))
        later.start()
        assert dispatcher.drain(LONG) == 0
        later.join()
        assert book.get("a", first.id).state is JobState.DONE
        book.submit("a", request(3))
        assert dispatcher.health()["alive"]
    assert book.get("a", second.id).state is JobState.WAITING
    assert len(engine.asked) == 1


def test_draining_gives_back_what_takes_too_long(book: JobBook) -> None:
    engine = ManualEngine()
    with dispatching(book, engine) as dispatcher:
        jobs = book.submit_many("a", [request(1), request(2), request(3)])
        engine.wait_for(2)
        engine.asked[0][2].set_running_or_notify_cancel()
        assert dispatcher.drain(0.01) == 2
        engine.answer(0)  # too late: somebody else will evaluate it
        assert dispatcher.drain(0) == 0
    assert engine.asked[1][2].cancelled()
    assert [book.get("a", job.id).state for job in jobs] == [JobState.WAITING] * 3
    with dispatching(book, TrivialEngine(lambda _: 2.0)):
        done = [book.wait("a", job.id, LONG) for job in jobs]
    # It was not the jobs' fault: what a service ends for its own sake does not count.
    assert [(job.state, job.attempts) for job in done] == [(JobState.DONE, 1)] * 3


def test_closing_leaves_no_job_running(book: JobBook) -> None:
    engine = ManualEngine()
    with dispatching(book, engine) as dispatcher:
        book.submit("a", request(1))
        engine.wait_for(1)
    dispatcher.close()
    assert book.counts()[JobState.WAITING] == 1


def test_a_dispatcher_that_never_started_can_be_closed(book: JobBook) -> None:
    dispatcher = Dispatcher(book, ManualEngine(), capacity=1)
    assert not dispatcher.health()["alive"]
    assert dispatcher.drain(LONG) == 0
    dispatcher.close()


def test_old_jobs_are_dropped_now_and_then(book: JobBook, monkeypatch: pytest.MonkeyPatch) -> None:
    purges = threading.Semaphore(0)
    monkeypatch.setattr(module, "_PURGE_SECONDS", 0.01)
    monkeypatch.setattr(book, "purge", purges.release)
    with dispatching(book, ManualEngine()):
        assert all(purges.acquire(timeout=LONG) for _ in range(2))
