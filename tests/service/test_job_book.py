"""Nothing is lost, answered twice or given to the wrong client."""

from __future__ import annotations

import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from job_samples import OTHER_TASK, TASK, Clock, evaluation, request

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.evaluation.service.book import (
    BookLimits,
    JobBook,
    QueueFull,
    Taken,
    UnknownJob,
)
from kernel_smith.evaluation.service.book_turns import OVERTAKING
from kernel_smith.records import Reason
from kernel_smith.records.job import Job, JobError, JobState
from kernel_smith.store.faults import StoreError

BROKEN = JobError(kind="internal", what="it broke")

KILLS = 12
KILLED = """
import os, sys, threading
from pathlib import Path
from job_samples import evaluation, request
from kernel_smith.evaluation.service.book import BookLimits, JobBook

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

def submit(book, first):
    for number in range(first, first + 1000):
        for client in ("a", "b"):
            say("submitted", client, number, book.submit(client, request(number)).id)

def serve(book):
    while True:
        for job in book.take(2):
            if book.finish(job.id, evaluation(job.request)):
                say("finished", job.id)

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        say("pid", os.getpid())
        book = JobBook.open(Path(sys.argv[1]), limits=BookLimits(attempts=1000))
        threading.Thread(target=serve, args=(book,)).start()
        submit(book, int(line))
        os._exit(1)
    os.waitpid(child, 0)
    say("dead")
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.sqlite"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def book(path: Path, clock: Clock) -> Iterator[JobBook]:
    with JobBook.open(path, clock=clock) as book:
        yield book


def finish(book: JobBook, job: Taken) -> bool:
    return book.finish(job.id, evaluation(job.request))


def ids(jobs: list[Job] | list[Taken]) -> list[str]:
    return [job.id for job in jobs]


# Submitting


def test_the_same_request_is_the_same_job_for_one_client_alone(book: JobBook) -> None:
    first = book.submit("a", request(1))
    assert first.state is JobState.WAITING
    assert book.submit("a", request(1)) == first
    assert book.submit("b", request(1)).id != first.id
    assert book.submit("a", request(2)).id != first.id


def test_what_is_done_answers_the_same_request_at_once(book: JobBook) -> None:
    book.submit("a", request(1))
    (taken,) = book.take(5)
    answer = evaluation(taken.request)
    assert book.finish(taken.id, answer)
    again = book.submit("a", request(1))
    assert (again.id, again.state, again.evaluation) == (taken.id, JobState.DONE, answer)
    assert book.take(1) == []


def test_what_failed_or_was_cancelled_is_a_new_job(book: JobBook) -> None:
    for end in (
        lambda job: book.fail(book.take(1)[0].id, BROKEN),
        lambda job: book.cancel("a", job),
    ):
        first = book.submit("a", request(1))
        end(first.id)
        second = book.submit("a", request(1))
        assert second.id != first.id
        assert second.state is JobState.WAITING
        book.cancel("a", second.id)


@pytest.mark.parametrize("reason", [Reason.TOO_NOISY, Reason.CALL_TIMEOUT])
def test_what_might_end_differently_is_a_new_job_and_stays_readable(
    book: JobBook, reason: Reason
) -> None:
    first = book.submit("a", request(1))
    (taken,) = book.take(1)
    answer = made_up(taken.request.task, taken.request.candidate, reason)
    assert book.finish(first.id, answer)
    second = book.submit("a", request(1))
    assert (second.id != first.id, second.state) == (True, JobState.WAITING)
    assert book.get("a", first.id).evaluation == answer


def test_asking_with_a_higher_priority_raises_that_of_a_waiting_job(book: JobBook) -> None:
    first, second = book.submit("a", request(1)), book.submit("a", request(2))
    assert book.submit("a", request(2, priority=5)).priority == 5
    assert book.submit("a", request(2, priority=3)).priority == 5
    assert ids(book.take(2)) == [second.id, first.id]


def test_a_batch_keeps_its_order_and_knows_its_doubles(book: JobBook) -> None:
    jobs = book.submit_many("a", [request(1), request(2), request(1)])
    assert jobs[0] == jobs[2] != jobs[1]
    assert ids(book.take(5)) == ids(jobs[:2])


def test_a_batch_that_does_not_fit_leaves_nothing_behind(path: Path) -> None:
    with JobBook.open(path, limits=BookLimits(waiting=5, waiting_per_client=3)) as book:
        known = book.submit("a", request(1))
        with pytest.raises(QueueFull) as caught:
            book.submit_many("a", [request(1, priority=9), *map(request, range(2, 5))])
        assert 1 <= caught.value.retry_after <= 60
        assert book.jobs("a") == [known]
        book.submit_many("a", [request(1), request(2), request(3)])
        assert book.submit("a", request(1)) == known  # what is known needs no room
        book.submit_many("b", [request(1), request(2)])
        with pytest.raises(QueueFull):
            book.submit("c", request(1))
        assert "c" not in book.clients()
        finish(book, book.take(1)[0])
        book.submit("c", request(1))


def test_what_is_known_is_found_even_where_too_much_waits(path: Path) -> None:
    with JobBook.open(path) as book:
        jobs = book.submit_many("a", [request(1), request(2)])
    with JobBook.open(path, limits=BookLimits(waiting=1)) as book:
        assert book.submit_many("a", [request(1), request(2)]) == jobs


# Taking


def test_priority_comes_first_then_the_order_of_submission(book: JobBook) -> None:
    wanted = [request(1), request(2, priority=1), request(3, priority=-1), request(4, priority=1)]
    jobs = book.submit_many("a", wanted)
    taken = book.take(9)
    assert ids(taken) == [jobs[index].id for index in (1, 3, 0, 2)]
    assert taken[0] == Taken(jobs[1].id, wanted[1], 1)
    assert book.get("a", jobs[0].id).state is JobState.RUNNING


def test_a_task_that_is_ready_goes_first_among_equals(book: JobBook) -> None:
    jobs = book.submit_many(
        "a", [request(1), request(2, task=OTHER_TASK), request(3, priority=1), request(4)]
    )
    prefer = {OTHER_TASK.content_hash}
    order = [book.take(1, prefer)[0].id for _ in jobs]
    assert order == [jobs[index].id for index in (2, 1, 0, 3)]


def test_nobody_is_overtaken_forever(book: JobBook) -> None:
    first = book.submit("a", request(0, task=OTHER_TASK))
    book.submit_many("a", [request(number) for number in range(2 * OVERTAKING)])
    taken = ids(book.take(2 * OVERTAKING, {TASK.content_hash}))
    assert taken.index(first.id) == OVERTAKING


def test_a_client_gets_its_own_path_of_a_task_that_others_have_too(book: JobBook) -> None:
    moved = TASK.model_copy(update={"path": "/home/b/sample.py"})
    assert moved.content_hash == TASK.content_hash
    book.submit("a", request(1))
    book.submit("a", request(2))
    book.submit("b", request(1, task=moved))
    assert book._file.rows("SELECT count(*) FROM tasks") == [(2,)]
    paths = {job.id: job.request.task.path for job in book.take(3)}
    assert paths[book.jobs("b")[0].id] == "/home/b/sample.py"
    assert {paths[job.id] for job in book.jobs("a")} == {TASK.path}


def test_a_request_that_cannot_be_read_fails_and_holds_up_nobody(book: JobBook) -> None:
    broken, good = book.submit_many("a", [request(1), request(2)])
    with book._file.transaction() as connection:
        connection.execute("UPDATE jobs SET request = x'00ff' WHERE id = ?", (broken.id,))
    assert ids(book.take(2)) == [good.id]
    assert book.get("a", broken.id).state is JobState.FAILED


# Ending


def test_a_final_state_is_never_overwritten(book: JobBook) -> None:
    ends: list[Callable[[Taken], bool]] = [
        lambda job: finish(book, job),
        lambda job: book.fail(job.id, BROKEN),
        lambda job: book.give_back(job.id),
    ]
    for number, end in enumerate(ends[:2]):
        job = book.submit("a", request(number))
        (taken,) = book.take(1)
        assert end(taken)
        before = book.get("a", job.id)
        assert before.state.final
        assert [again(taken) for again in ends] == [False] * 3
        assert book.cancel("a", job.id) == before
    assert not book.give_back("no such job")


def test_outcomes_that_are_stored_together_end_as_they_would_one_by_one(book: JobBook) -> None:
    jobs = book.submit_many("a", [request(number) for number in range(4)])
    first, second, third = book.take(3)
    book.cancel("a", third.id)
    outcomes = [
        (first.id, evaluation(first.request)),
        (second.id, BROKEN),
        (third.id, evaluation(third.request)),
        (jobs[3].id, BROKEN),
        (first.id, BROKEN),
    ]
    assert book.end_many(outcomes) == [True, True, False, False, False]
    assert [book.get("a", job.id).state for job in jobs] == [
        JobState.DONE,
        JobState.FAILED,
        JobState.CANCELLED,
        JobState.WAITING,
    ]
    assert book.end_many([]) == []


def test_only_a_running_job_can_be_finished(book: JobBook) -> None:
    job = book.submit("a", request(1))
    assert not book.finish(job.id, evaluation(request(1)))
    assert book.get("a", job.id) == job


def test_what_is_given_back_waits_in_its_old_place_until_it_was_begun_too_often(
    book: JobBook,
) -> None:
    job, _ = book.submit_many("a", [request(1), request(2)])
    for attempt in (1, 2, 3):
        (taken,) = book.take(1)
        assert (taken.id, taken.attempt) == (job.id, attempt)
        assert book.give_back(job.id) == (attempt < 3)
    ended = book.get("a", job.id)
    assert ended.state is JobState.FAILED and ended.attempts == 3
    assert ended.error is not None and ended.error.kind == "internal"
    assert "3 times" in ended.error.what


def test_the_answer_of_a_cancelled_job_is_thrown_away(book: JobBook) -> None:
    for number, end in enumerate(
        [
            lambda job: finish(book, job),
            lambda job: book.fail(job.id, BROKEN),
            lambda job: book.give_back(job.id),
        ]
    ):
        job = book.submit("a", request(number))
        (taken,) = book.take(1)
        assert book.cancel("a", job.id).state is JobState.RUNNING
        fresh = book.submit("a", request(number))
        assert fresh.id != job.id
        assert not end(taken)
        assert book.get("a", job.id).state is JobState.CANCELLED
        assert book.get("a", fresh.id).state is JobState.WAITING
        book.cancel("a", fresh.id)
    assert book.take(1) == []


# Asking


def test_another_clients_job_does_not_exist(book: JobBook) -> None:
    job = book.submit("a", request(1))
    book.submit("b", request(1))
    asks: list[Callable[[str, str], object]] = [
        book.get,
        book.cancel,
        lambda client, job: book.wait(client, job, 0),
        lambda client, job: book.jobs(client, after=job),
    ]
    for ask in asks:
        for client, wanted in (("b", job.id), ("nobody", job.id), ("a", "no such job")):
            with pytest.raises(UnknownJob):
                ask(client, wanted)
    assert book.get("a", job.id) == job
    assert {change[1].id for change in book.changes("b", 0, 0)} == set(ids(book.jobs("b")))


def test_jobs_are_listed_in_pages_and_without_evaluations(book: JobBook) -> None:
    jobs = book.submit_many("a", [request(number) for number in range(5)])
    book.submit("b", request(1))
    taken = book.take(6)
    for job in taken[:4]:
        finish(book, job)
    everything = book.jobs("a")
    assert ids(everything) == ids(jobs)
    assert all(job.evaluation is None for job in everything)
    assert ids(book.jobs("a", limit=2)) == ids(jobs[:2])
    assert ids(book.jobs("a", after=jobs[1].id, limit=2)) == ids(jobs[2:4])
    done = book.jobs("a", state=JobState.DONE)
    assert set(ids(done)) == set(ids(taken[:4])) & set(ids(jobs))


def test_waiting_ends_with_the_job_or_with_the_time(book: JobBook) -> None:
    job = book.submit("a", request(1))
    assert book.wait("a", job.id, 0.01).state is JobState.WAITING
    (taken,) = book.take(1)
    other = threading.Timer(0.05, finish, (book, taken))
    other.start()
    assert book.wait("a", job.id, 60).state is JobState.DONE
    other.join()


def test_closing_the_book_ends_all_waiting(book: JobBook) -> None:
    job = book.submit("a", request(1))
    closer = threading.Timer(0.05, book.close)
    closer.start()
    assert book.wait("a", job.id, 60) == job
    closer.join()
    assert book.changes("a", 1, 60) == []
    with pytest.raises(StoreError, match="closed"):
        book.get("a", job.id)


def test_changes_are_numbered_for_each_client_and_show_jobs_as_they_are_now(book: JobBook) -> None:
    first, second = book.submit_many("a", [request(1), request(2)])
    book.submit_many("b", [request(1), request(2), request(3)])
    assert book.changes("a", 0, 0) == [(1, first), (2, second)]
    finish(book, book.take(1)[0])
    ((number, done),) = book.changes("a", 2, 0)
    assert (number, done.id, done.state, done.evaluation) == (4, first.id, JobState.DONE, None)
    assert [number for number, _ in book.changes("a", 0, 0)] == [2, 4]
    assert book.changes("a", 4, 0.01) == []
    other = threading.Timer(0.05, book.submit, ("a", request(9)))
    other.start()
    assert [number for number, _ in book.changes("a", 4, 60)] == [5]
    other.join()


def test_the_last_change_of_a_client_is_known_without_reading_the_others(book: JobBook) -> None:
    assert book.last_change("a") == 0
    book.submit_many("a", [request(number) for number in range(300)])
    book.submit("b", request(1))
    job = book.submit("a", request(300))
    assert book.changes("a", book.last_change("a"), 0) == []
    book.cancel("a", job.id)
    assert book.changes("a", book.last_change("a") - 1, 0)[0][1].id == job.id
    assert book.last_change("b") == 1


def test_counts_say_what_there_is(book: JobBook, clock: Clock) -> None:
    assert book.counts() == dict.fromkeys(JobState, 0)
    assert book.oldest_waiting_seconds() == 0
    jobs = book.submit_many("a", [request(number) for number in range(5)])
    clock.now += 7
    finish(book, book.take(1)[0])
    book.submit("b", request(1))
    book.cancel("a", jobs[1].id)
    book.fail(book.take(1)[0].id, BROKEN)
    clock.now += 3
    taken = book.take(1)
    clock.now += 2
    finish(book, taken[0])
    expected = {"waiting": 2, "running": 0, "done": 2, "failed": 1, "cancelled": 1}
    assert book.counts() == {JobState(state): count for state, count in expected.items()}
    assert book.oldest_waiting_seconds() == 12
    assert sum(use.seconds for use in book.clients().values()) == 2
    assert sum(use.waiting for use in book.clients().values()) == 2


# Housekeeping


def test_jobs_of_a_process_that_died_wait_again(path: Path, clock: Clock) -> None:
    book = JobBook.open(path, clock=clock)
    jobs = book.submit_many("a", [request(number) for number in range(3)])
    finish(book, book.take(1)[0])
    book.take(2)
    book.cancel("a", jobs[2].id)
    assert book.recover() == 0  # its own are safe
    book.close()
    clock.now += 1e6
    with JobBook.open(path, clock=clock) as book:
        states = [job.state for job in book.jobs("a")]
        assert states == [JobState.DONE, JobState.WAITING, JobState.CANCELLED]
        assert book.clients()["a"].seconds == 0  # nobody pays for a time without a service
        assert [(job.id, job.attempt) for job in book.take(9)] == [(jobs[1].id, 2)]


def test_a_job_whose_process_always_dies_is_given_up(path: Path) -> None:
    with JobBook.open(path) as book:
        job = book.submit("a", request(1))
    for _ in range(3):
        with JobBook.open(path) as book:
            assert len(book.take(1)) == 1
    with JobBook.open(path) as book:
        assert book.get("a", job.id).state is JobState.FAILED


def test_a_second_owner_is_refused_and_told_of_the_first(book: JobBook, path: Path) -> None:
    with pytest.raises(BadInput, match=f"pid {os.getpid()}") as caught:
        JobBook.open(path)
    assert f"kill {os.getpid()}" in caught.value.hint
    book.close()
    JobBook.open(path).close()


def test_a_file_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    notes, other = tmp_path / "notes", tmp_path / "other.sqlite"
    notes.write_text("my notes\n" * 100)
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE notes (text)")
    connection.close()
    for file, what in ((notes, "not a job book"), (other, "another program")):
        before = file.read_bytes()
        with pytest.raises(StoreError, match=what):
            JobBook.open(file)
        assert file.read_bytes() == before


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be written") as caught:
        JobBook.open(tmp_path / "file" / "jobs.sqlite")
    assert str(tmp_path / "file") in caught.value.hint


def test_a_newer_file_is_refused(path: Path) -> None:
    JobBook.open(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="newer kernel-smith"):
        JobBook.open(path)


def test_a_full_disk_costs_the_request_at_hand_and_nothing_else(book: JobBook) -> None:
    connection = book._file._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages + 4}")
    stored = []

    def fill() -> None:
        for number in range(1000):
            stored.append(book.submit("a", request(number)).id)

    with pytest.raises(StoreError, match="the disk is full"):
        fill()
    assert ids(book.jobs("a", limit=1000)) == stored
    connection.execute("PRAGMA max_page_count = 1000000")
    book.submit("a", request(1000))
    assert len(book.take(1001)) == len(stored) + 1


@pytest.mark.slow
def test_old_jobs_are_dropped_with_their_tasks_and_numbers_go_on(path: Path, clock: Clock) -> None:
    limits = BookLimits(keep_seconds=100, keep_jobs=600)
    with JobBook.open(path, limits=limits, clock=clock) as book:
        assert book.purge() == 0
        old = book.submit("a", request(0, task=OTHER_TASK))
        finish(book, book.take(1)[0])
        clock.now += 101
        waiting = book.submit("b", request(1))
        assert book.purge() == 1
        with pytest.raises(UnknownJob):
            book.get("a", old.id)
        assert book._file.rows("SELECT hash FROM tasks") == [(TASK.content_hash,)]
        assert book.submit("a", request(0, task=OTHER_TASK)).id != old.id
        assert [number for number, _ in book.changes("a", 3, 0)] == [4]
        for job in book.submit_many("c", [request(number) for number in range(1700)]):
            book.cancel("c", job.id)
        assert book.purge() == 1100
        assert book.counts()[JobState.CANCELLED] == 600
        assert book.get("b", waiting.id) == waiting


# Cost


def every_operation(book: JobBook, number: int) -> None:
    job = book.submit("a", request(number, priority=1))
    book.submit("a", request(number))
    (taken,) = book.take(1, {TASK.content_hash})
    book.give_back(taken.id)
    (taken,) = book.take(1)
    finish(book, taken)
    book.fail(book.take(1)[0].id, BROKEN)
    book.get("a", job.id)
    book.cancel("a", book.submit("a", request(number + 1)).id)
    book.wait("a", job.id, 0)
    (_, last) = book.jobs("a", limit=2)
    book.jobs("a", state=JobState.WAITING, after=last.id, limit=2)
    book.changes("a", book.changes("a", 0, 0)[-1][0], 0)
    book.last_change("a")
    book.oldest_waiting_seconds()
    book.counts()
    book.recover()


def test_no_operation_scans_or_sorts_jobs(book: JobBook) -> None:
    book.submit_many("a", [request(number) for number in range(20)])
    book.submit("b", request(1))
    connection, statements = book._file._connection, set[str]()
    connection.set_trace_callback(statements.add)
    every_operation(book, 100)
    book.purge()
    connection.set_trace_callback(None)
    plans = {
        statement: [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
        for statement in statements
        if re.match("SELECT|UPDATE|INSERT|DELETE", statement)
    }
    assert len(plans) > 20
    for statement, plan in plans.items():
        assert not re.search("SCAN (jobs|tasks)|TEMP B-TREE", " ".join(plan)), (statement, plan)


def test_thousands_of_jobs_cost_no_operation_more_than_a_few_do(book: JobBook) -> None:
    connection = book._file._connection

    def work(number: int) -> int:
        """How many hundreds of SQLite's instructions all operations take."""
        steps = Counter[str]()
        connection.set_progress_handler(lambda: steps.update("x") or 0, 100)
        every_operation(book, number)
        connection.set_progress_handler(None, 0)
        return steps.total()

    book.submit_many("a", [request(number) for number in range(600)])
    few = work(10_000)
    book.submit_many("a", [request(number) for number in range(600, 1900)])
    for job in book.take(500):
        finish(book, job)
    assert 0 < work(20_000) < 1.5 * few


# Threads and kills


def test_eight_threads_lose_and_double_nothing(path: Path) -> None:
    answered: Counter[str] = Counter()
    wrong: list[Job] = []
    over = threading.Event()

    def ask(client: str) -> None:
        wanted = {number: book.submit(client, request(number)).id for number in range(30)}
        for number in range(30):
            assert book.submit(client, request(number)).id == wanted[number]
        for number, identity in wanted.items():
            job = book.wait(client, identity, 60)
            right = evaluation(request(number)).candidate_hash
            if job.evaluation is None or job.evaluation.candidate_hash != right:
                wrong.append(job)

    def serve(seed: int) -> None:
        chance = random.Random(seed)
        while not over.is_set():
            for job in book.take(chance.randint(1, 4)):
                if job.attempt < 3 and chance.random() < 0.2:
                    book.give_back(job.id)
                elif finish(book, job):
                    answered[job.id] += 1
            time.sleep(0.001)

    with JobBook.open(path) as book:
        askers = [threading.Thread(target=ask, args=(name,)) for name in "abcd"]
        servers = [threading.Thread(target=serve, args=(seed,)) for seed in range(4)]
        for thread in askers + servers:
            thread.start()
        for thread in askers:
            thread.join()
        over.set()
        for thread in servers:
            thread.join()
        assert wrong == []
        assert book.counts()[JobState.DONE] == len(answered) == 4 * 30
        assert set(answered.values()) == {1}


def kill_once(
    process: subprocess.Popen[str], first: int, chance: random.Random
) -> Iterator[list[str]]:
    """Let a process submit and finish for a moment, kill it, and say what it acknowledged."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{first}\n")
    process.stdin.flush()
    pid = int(process.stdout.readline().split()[1])
    yield process.stdout.readline().split()
    time.sleep(chance.random() * 0.08)
    os.kill(pid, signal.SIGKILL)
    for line in process.stdout:
        if line == "dead\n":
            return
        yield line.split()


def test_what_was_acknowledged_survives_kills(path: Path) -> None:
    submitted: dict[tuple[str, int], str] = {}
    finished: Counter[str] = Counter()
    chance = random.Random(1)
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)],
        cwd=Path(__file__).parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        for kill in range(KILLS):
            # Some requests come again, as those of clients do that got no answer.
            for word, *rest in kill_once(process, 5 * kill, chance):
                if word == "finished":
                    finished[rest[0]] += 1
                else:
                    client, number, identity = rest[0], int(rest[1]), rest[2]
                    assert submitted.setdefault((client, number), identity) == identity
        assert process.stdin is not None
        process.stdin.close()
    assert len(submitted) > KILLS and finished
    assert set(finished.values()) == {1}
    with JobBook.open(path, limits=BookLimits(attempts=1000)) as book:
        assert book._file.rows("PRAGMA integrity_check") == [("ok",)]
        for identity in finished:
            assert book._file.rows("SELECT state FROM jobs WHERE id = ?", identity) == [("done",)]
        while jobs := book.take(50):
            assert all(finish(book, job) for job in jobs)
        for (client, number), identity in submitted.items():
            found = book.get(client, identity).evaluation
            assert found is not None
            assert found.candidate_hash == request(number).candidate.content_hash
        # At each kill, one job may have been stored that was never acknowledged.
        ((stored,),) = book._file.rows("SELECT count(*) FROM jobs WHERE state = 'done'")
        assert len(submitted) <= stored <= len(submitted) + KILLS
        assert book.counts() == dict.fromkeys(JobState, 0) | {JobState.DONE: stored}
