"""Clients get equal shares of the time, and one with a single job never waits for thousands."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from job_samples import Clock, evaluation, request

from kernel_smith.evaluation.service.book import BookLimits, JobBook, Taken
from kernel_smith.evaluation.service.fairness import (
    HALF_LIFE,
    LEAST_CHARGE,
    MOST_CHARGE,
    account_on_return,
    charge,
)

BATCH = 500

seconds = st.floats(0, 1e6)
few_examples = settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])


@contextmanager
def new_book(clock: Clock, **limits: int) -> Iterator[JobBook]:
    with (
        tempfile.TemporaryDirectory() as folder,
        JobBook.open(
            Path(folder) / "jobs.sqlite", limits=BookLimits(**limits), clock=clock
        ) as book,
    ):
        yield book


class Service:
    """Serves a book in simulated time; who asked can be read from the candidate's number."""

    def __init__(self, book: JobBook, clock: Clock, durations: list[float], capacity: int) -> None:
        self.book, self.clock, self.durations, self.capacity = book, clock, durations, capacity
        self.served = [0.0] * len(durations)
        self.taken: list[int] = []
        self._running: list[tuple[float, int, Taken]] = []

    def submit(self, client: int, count: int) -> None:
        requests = [request(client + 100 * number) for number in range(count)]
        for start in range(0, count, BATCH):
            self.book.submit_many(str(client), requests[start : start + BATCH])

    def step(self) -> bool:
        """Fill the free places, then let the first job end."""
        for job in self.book.take(self.capacity - len(self._running)):
            client = int(job.request.candidate.source.split()[-1]) % 100
            self.taken.append(client)
            self._running.append((self.clock.now + self.durations[client], client, job))
        if not self._running:
            return False
        first = min(self._running, key=lambda entry: entry[0])
        self._running.remove(first)
        self.clock.now = max(self.clock.now, first[0])
        assert self.book.finish(first[2].id, evaluation(first[2].request))
        self.served[first[1]] += self.durations[first[1]]
        return True


def test_one_job_does_not_wait_for_five_thousand() -> None:
    clock = Clock()
    with new_book(clock, waiting_per_client=5000) as book:
        service = Service(book, clock, [3.0, 1.0], capacity=4)
        service.submit(0, 5000)
        for _ in range(20):
            service.step()
        before = len(service.taken)
        service.submit(1, 1)
        service.step()
        assert service.taken[before] == 1


@few_examples
@given(
    durations=st.lists(st.floats(0, 30), min_size=2, max_size=5),
    backlogs=st.lists(st.integers(0, 25), min_size=5, max_size=5),
    capacity=st.integers(1, 8),
    steps=st.integers(0, 30),
)
def test_a_newcomer_is_served_before_anybody_is_served_twice(
    durations: list[float], backlogs: list[int], capacity: int, steps: int
) -> None:
    clock = Clock()
    newcomer = len(durations) - 1
    with new_book(clock) as book:
        service = Service(book, clock, durations, capacity)
        for client in range(newcomer):
            service.submit(client, backlogs[client])
        for _ in range(steps):
            service.step()
        before = len(service.taken)
        service.submit(newcomer, 1)
        while newcomer not in service.taken:
            assert service.step()
        earlier = service.taken[before : service.taken.index(newcomer)]
        assert len(earlier) == len(set(earlier))


@few_examples
@given(
    durations=st.lists(st.floats(0.1, 20), min_size=2, max_size=4),
    capacity=st.integers(1, 6),
    steps=st.integers(1, 60),
)
def test_clients_that_always_have_jobs_get_equal_time(
    durations: list[float], capacity: int, steps: int
) -> None:
    clock = Clock()
    with new_book(clock) as book:
        service = Service(book, clock, durations, capacity)
        for client in range(len(durations)):
            service.submit(client, steps + capacity)
        for _ in range(steps):
            service.step()
        longest = max(1.0, *durations)  # one second is what the first jobs are guessed to take
        assert max(service.served) - min(service.served) <= 2 * capacity * longest


def test_nobody_saves_up_for_later() -> None:
    clock = Clock()
    with new_book(clock) as book:
        service = Service(book, clock, [1.0, 1.0], capacity=1)
        service.submit(1, 1)
        service.step()
        service.submit(0, 40)
        for _ in range(20):
            service.step()
        clock.now += 10 * HALF_LIFE
        service.submit(1, 20)
        before = len(service.taken)
        for _ in range(10):
            service.step()
        assert sorted(service.taken[before:]) == [0] * 5 + [1] * 5


def test_asking_again_for_what_is_done_forgives_nothing() -> None:
    clock = Clock()
    with new_book(clock) as book:
        service = Service(book, clock, [50.0, 1.0], capacity=1)
        service.submit(1, 2)
        service.submit(0, 1)
        while service.step():
            pass
        clock.now += HALF_LIFE

        def account() -> float:
            return float(book._file.rows("SELECT account FROM clients WHERE name = '0'")[0][0])

        before = account()
        for _ in range(10):
            service.submit(0, 1)
        assert account() == before


@given(account=seconds, start=seconds, away=seconds)
def test_a_client_returns_between_the_others_and_what_it_had(
    account: float, start: float, away: float
) -> None:
    returned = account_on_return(account, start, away)
    assert start <= returned <= max(start, account) * (1 + 1e-12)


def test_half_of_what_is_owed_is_forgotten_in_a_half_life() -> None:
    assert account_on_return(100.0, 20.0, HALF_LIFE) == pytest.approx(60.0)
    assert account_on_return(100.0, 20.0, -5.0) == 100.0


@given(taken=st.floats(-1e9, 1e9))
def test_no_job_is_free_and_none_silences_its_client(taken: float) -> None:
    assert LEAST_CHARGE <= charge(taken) <= MOST_CHARGE
