"""Coroutines that wait for changes miss none, and nobody walks through what is long past."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from job_samples import request

from kernel_smith.evaluation.service.book import JobBook
from kernel_smith.evaluation.service.following import Following
from kernel_smith.records import Job, JobState

LONG = 120.0


@pytest.fixture
def book(tmp_path: Path) -> Iterator[JobBook]:
    with JobBook.open(tmp_path / "jobs.sqlite") as book:
        yield book


async def _wait_until(book: JobBook, following: Following, job: str, state: JobState) -> None:
    """As the service does: listen, look, and look again when woken."""
    with following.listen("a", job) as listener:
        while book.get("a", job).state is not state:
            assert await listener.changed(LONG)


def test_a_change_just_after_the_first_look_is_noticed(
    book: JobBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes before the thread that follows has begun to look."""
    job = book.submit("a", request(1)).id
    look = book.last_change

    def change_first(client: str) -> int:
        book.cancel("a", job)
        return look(client)

    monkeypatch.setattr(book, "last_change", change_first)
    following = Following(book)
    asyncio.run(_wait_until(book, following, job, JobState.CANCELLED))
    following.close()


def test_later_changes_are_noticed(book: JobBook) -> None:
    following = Following(book)
    job = book.submit("a", request(1)).id

    async def take_later() -> None:
        waiting = asyncio.create_task(_wait_until(book, following, job, JobState.RUNNING))
        await asyncio.sleep(0.1)
        book.take(1)
        await waiting

    asyncio.run(take_later())
    following.close()


def test_following_begins_with_the_newest_change(
    book: JobBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    book.submit_many("a", [request(number) for number in range(300)])
    asked: list[int] = []
    look = book.changes

    def changes(client: str, after: int, timeout: float) -> list[tuple[int, Job]]:
        asked.append(after)
        return look(client, after, timeout)

    monkeypatch.setattr(book, "changes", changes)
    following = Following(book)
    assert following.newest("a") == 300

    async def listen() -> None:
        with following.listen("a") as listener:
            assert await listener.changed(LONG)  # all look once more when the thread begins
            book.submit("a", request(300))
            assert await listener.changed(LONG)

    asyncio.run(listen())
    following.close()
    assert asked[0] == 300
