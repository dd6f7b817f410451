"""An engine whose evaluations are made by a service: as good as a pool on this machine."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError, Future, wait
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import LONG, TASK, serving, until

from kernel_smith.errors import BadInput, InternalError, MissingPrerequisite
from kernel_smith.evaluation.engines.remote import RemoteEngine
from kernel_smith.evaluation.service.auth import TokenFile, add_token, remove_token
from kernel_smith.evaluation.service.book import BookLimits, JobBook
from kernel_smith.records import Candidate, Evaluation, JobState, Options, Task
from kernel_smith.testing.trivial import TrivialEngine


def _candidate(number: int) -> Candidate:
    return Candidate(source=f"# {number}")


def _number(candidate: Candidate) -> float:
    return float(candidate.source[2:]) + 1


def _speedup(evaluation: Evaluation) -> float:
    assert evaluation.timing is not None
    return evaluation.timing.speedups[0].speedup.value


class GatedEngine(TrivialEngine):
    """Begins at once, and ends when the gate is open."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.begun = threading.Semaphore(0)
        super().__init__(self._pass, seconds=0.001, lanes=4)

    def _pass(self, candidate: Candidate) -> float:
        self.begun.release()
        assert self.gate.wait(LONG)
        return _number(candidate)


def test_results_match_their_requests(tmp_path: Path) -> None:
    engine = TrivialEngine(_number, seconds=0.001, lanes=4)
    with serving(tmp_path, engine, capacity=4) as served, RemoteEngine(served.url) as remote:
        futures = [remote.submit(TASK, _candidate(number)) for number in range(100)]
        for number, future in enumerate(futures):
            evaluation = future.result(LONG)
            assert _speedup(evaluation) == number + 1
            assert evaluation.candidate_hash == _candidate(number).content_hash
    assert len(engine.evaluated) == 100


def test_the_same_request_twice_is_evaluated_once_until_it_was_answered(tmp_path: Path) -> None:
    """Whoever asks again after that wants to know whether it was luck."""
    engine = TrivialEngine(_number)
    with serving(tmp_path, engine) as served:
        with RemoteEngine(served.url) as remote:
            first, second = (remote.submit(TASK, _candidate(0)) for _ in range(2))
            assert first.result(LONG) == second.result(LONG)
            again = remote.submit(TASK, _candidate(0)).result(LONG)
            assert again.created_at > first.result().created_at
        with RemoteEngine(served.url) as restarted:
            assert restarted.submit(TASK, _candidate(0)).result(LONG) == first.result()
            assert restarted.submit(TASK, _candidate(0)).result(LONG) == again
    assert len(engine.evaluated) == 2


def test_options_and_task_arrive_and_paths_stay_at_home(tmp_path: Path) -> None:
    seen: list[tuple[Task, Options]] = []

    class Looking(TrivialEngine):
        def submit(
            self, task: Task, candidate: Candidate, options: Options | None = None, **more: Any
        ) -> Future[Evaluation]:
            assert options is not None
            seen.append((task, options))
            return super().submit(task, candidate, options, **more)

    task = TASK.model_copy(update={"path": "/home/me/task.py", "starts": {"cpp": "/home/me/s.py"}})
    with serving(tmp_path, Looking(_number)) as served, RemoteEngine(served.url) as remote:
        remote.submit(task, _candidate(0), Options(seeds=7)).result(LONG)
    [(arrived, options)] = seen
    assert options == Options(seeds=7)
    assert arrived.content_hash == task.content_hash
    assert "/home" not in arrived.model_dump_json()


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (BadInput("odd", hint="mend it"), BadInput),
        (MissingPrerequisite("no compiler", hint="get one"), MissingPrerequisite),
        (RuntimeError("a defect"), InternalError),
    ],
)
def test_errors_arrive_as_what_they_are(
    tmp_path: Path, raised: Exception, expected: type[Exception]
) -> None:
    def judge(candidate: Candidate) -> float:
        raise raised

    engine = TrivialEngine(judge, seconds=0.001)
    with serving(tmp_path, engine) as served, RemoteEngine(served.url) as remote:
        error = remote.submit(TASK, _candidate(0)).exception(LONG)
    assert type(error) is expected
    assert str(raised) in str(error)
    assert getattr(error, "hint", None) == getattr(raised, "hint", None)


def test_a_queue_that_is_full_is_waited_for(tmp_path: Path) -> None:
    engine = TrivialEngine(_number, seconds=0.001)
    limits = BookLimits(waiting=3)
    with (
        serving(tmp_path, engine, limits=limits) as served,
        RemoteEngine(served.url, patience=LONG) as remote,
    ):
        futures = [remote.submit(TASK, _candidate(number)) for number in range(12)]
        assert [_speedup(future.result(LONG)) for future in futures] == list(range(1, 13))


def test_one_request_that_is_refused_does_not_spoil_the_others(tmp_path: Path) -> None:
    with (
        serving(tmp_path, TrivialEngine(_number), max_body=20_000) as served,
        RemoteEngine(served.url) as remote,
    ):
        large = Candidate(source=f"# 0{' ' * 30_000}")
        futures = [remote.submit(TASK, _candidate(number)) for number in range(10)]
        refused = remote.submit(TASK, large)
        futures += [remote.submit(TASK, _candidate(number)) for number in range(10, 20)]
        assert [_speedup(future.result(LONG)) for future in futures] == list(range(1, 21))
        assert isinstance(refused.exception(LONG), BadInput)


def test_a_service_that_is_restarted_goes_unnoticed(tmp_path: Path) -> None:
    engine = TrivialEngine(_number, seconds=0.005)
    with serving(tmp_path, engine, drain_seconds=0) as served:
        port = httpx.URL(served.url).port
        remote = RemoteEngine(served.url, patience=LONG)
        futures = [remote.submit(TASK, _candidate(number)) for number in range(60)]
        wait(futures[:5], LONG)
    late = remote.submit(TASK, _candidate(60))
    with serving(tmp_path, engine, port=port), remote:
        assert [_speedup(future.result(LONG)) for future in [*futures, late]] == list(range(1, 62))


def test_a_service_that_lost_its_book_is_asked_again(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    with serving(tmp_path / "first", capacity=0) as served:
        port = httpx.URL(served.url).port
        remote = RemoteEngine(served.url, patience=LONG)
        future = remote.submit(TASK, _candidate(4))
        _wait_for_jobs(served.book, 1)
    with serving(tmp_path / "second", TrivialEngine(_number), port=port), remote:
        assert _speedup(future.result(LONG)) == 5


def _wait_for_jobs(book: JobBook, count: int) -> None:
    seen: set[str] = set()
    number = 0
    while len(seen) < count:
        changes = book.changes("local", number, LONG)
        assert changes
        number = changes[-1][0]
        seen.update(job.id for _, job in changes)


def test_somebody_else_who_cancels_the_job_is_no_harm(tmp_path: Path) -> None:
    with serving(tmp_path, capacity=0) as served:
        port = httpx.URL(served.url).port
        remote = RemoteEngine(served.url, patience=LONG)
        future = remote.submit(TASK, _candidate(2))
        _wait_for_jobs(served.book, 1)
        [job] = served.book.jobs("local")
        served.http.delete(f"/v1/jobs/{job.id}")
        _wait_for_jobs(served.book, 2)
    with serving(tmp_path, TrivialEngine(_number), port=port), remote:
        assert _speedup(future.result(LONG)) == 3


@pytest.mark.slow
def test_a_service_that_never_answers_ends_patience(tmp_path: Path) -> None:
    with serving(tmp_path, capacity=0) as served:
        remote = RemoteEngine(served.url, patience=0.5)
        before = remote.submit(TASK, _candidate(0))
        _wait_for_jobs(served.book, 1)
    with remote:
        after = remote.submit(TASK, _candidate(1))
        for future in (before, after):
            error = future.exception(LONG)
            assert isinstance(error, MissingPrerequisite)
            assert "kernel-smith serve" in error.hint
        for question in (remote.capacity, remote.health):
            with pytest.raises(MissingPrerequisite):
                question()


def test_what_answers_but_is_no_service_is_named_so(tmp_path: Path) -> None:
    with (
        serving(tmp_path, capacity=0) as served,
        RemoteEngine(f"{served.url}/elsewhere") as remote,
    ):
        error = remote.submit(TASK, _candidate(0)).exception(LONG)
        assert isinstance(error, BadInput)
        assert "address" in error.hint
        with pytest.raises(BadInput):
            remote.capacity()


def test_a_token_is_sent_and_a_wrong_one_is_bad_input(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    secret = add_token(file, "ann")
    with serving(tmp_path, TrivialEngine(_number), tokens=TokenFile(file)) as served:
        with RemoteEngine(served.url, secret) as remote:
            assert _speedup(remote.submit(TASK, _candidate(1)).result(LONG)) == 2
        for wrong in (None, "wrong"):
            with RemoteEngine(served.url, wrong) as remote:
                error = remote.submit(TASK, _candidate(2)).exception(LONG)
                assert isinstance(error, BadInput)
                assert "token" in error.hint


def test_a_token_that_is_taken_away_ends_the_wait(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    secret = add_token(file, "ann")
    with serving(tmp_path, capacity=0, tokens=TokenFile(file)) as served:
        port = httpx.URL(served.url).port
        remote = RemoteEngine(served.url, secret)
        future = remote.submit(TASK, _candidate(0))
        assert served.book.changes("ann", 0, LONG)
    remove_token(file, "ann")
    with serving(tmp_path, capacity=0, port=port, tokens=TokenFile(file)), remote:
        assert isinstance(future.exception(LONG), BadInput)


def test_what_waits_can_be_cancelled_and_the_service_learns_of_it(tmp_path: Path) -> None:
    with serving(tmp_path, capacity=0) as served, RemoteEngine(served.url) as remote:
        twice = [remote.submit(TASK, _candidate(0)) for _ in range(2)]
        other = remote.submit(TASK, _candidate(1))
        _wait_for_jobs(served.book, 2)
        assert twice[0].cancel()
        assert other.cancel()
        until(lambda: served.book.counts()[JobState.CANCELLED] == 1)
        # Somebody still waits for the first.
        assert served.book.counts()[JobState.WAITING] == 1
        assert twice[1].cancel()
        until(lambda: served.book.counts()[JobState.CANCELLED] == 2)


def test_closing_finishes_what_was_begun_and_cancels_the_rest(tmp_path: Path) -> None:
    engine = GatedEngine()
    with serving(tmp_path, engine) as served:
        remote = RemoteEngine(served.url)
        begun = remote.submit(TASK, _candidate(0))
        assert engine.begun.acquire(timeout=LONG)
        until(begun.running)
        waiting = [remote.submit(TASK, _candidate(number)) for number in range(1, 5)]
        assert not begun.cancel()
        threading.Timer(0.1, engine.gate.set).start()
        remote.close()
        assert _speedup(begun.result(0)) == 1
        for future in waiting:
            with pytest.raises(CancelledError):
                future.result(0)
        assert served.book.counts()[JobState.WAITING] == 0
        with pytest.raises(RuntimeError, match="closed"):
            remote.submit(TASK, _candidate(9))
        remote.close()


def test_leaving_in_a_hurry_waits_for_nothing(tmp_path: Path) -> None:
    engine = GatedEngine()
    with serving(tmp_path, engine) as served:

        def leave() -> None:
            with RemoteEngine(served.url) as remote:
                futures.append(remote.submit(TASK, _candidate(0)))
                assert engine.begun.acquire(timeout=LONG)
                until(futures[0].running)
                futures.append(remote.submit(TASK, _candidate(1)))
                raise KeyboardInterrupt

        futures: list[Future[Evaluation]] = []
        with pytest.raises(KeyboardInterrupt):
            leave()
        assert isinstance(futures[0].exception(0), InternalError)
        assert futures[1].cancelled()
        engine.gate.set()


def test_capacity_and_health_are_those_of_the_service(tmp_path: Path) -> None:
    with serving(tmp_path, capacity=3) as served, RemoteEngine(served.url) as remote:
        assert remote.capacity() == 3
        health = remote.health()
        assert health["ready"] is True
        assert health["alive"] is True


@pytest.mark.parametrize("url", ["", "localhost:8300", "ftp://host", "http://", "http://[", "a b"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(BadInput, match="not the address"):
        RemoteEngine(url)


@pytest.mark.parametrize("token", ["", " ", "über", "a\nb"])
def test_what_cannot_be_a_token_is_refused(token: str) -> None:
    with pytest.raises(BadInput, match="token"):
        RemoteEngine("http://127.0.0.1:1", token)
