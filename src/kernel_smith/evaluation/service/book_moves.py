"""How jobs enter the book, end, wait again and are dropped; inside a transaction of the book."""

from __future__ import annotations

import secrets
import sqlite3
from dataclasses import dataclass, replace

from kernel_smith.evaluation.service import book_turns
from kernel_smith.evaluation.service.book_rows import Packed, packed_text
from kernel_smith.records.job import JobError, JobState

Content = str | bytes

_ID_BYTES = 18  # 144 random bits; nobody guesses another's


class Entry:
    """Where one client's requests become jobs."""

    def __init__(self, connection: sqlite3.Connection, client: str, now: float) -> None:
        self._connection = connection
        self._now = now
        self._tasks: dict[bytes, int] = {}
        self.added = 0
        connection.execute("INSERT OR IGNORE INTO clients (name) VALUES (?)", (client,))
        row = connection.execute(
            "SELECT id, waiting, running FROM clients WHERE name = ?", (client,)
        ).fetchone()
        self._client: int = row[0]
        self._is_away = row[1] + row[2] == 0

    def number_for(self, request: Packed) -> int:
        """The number of the client's job for this request, which is made unless there is one."""
        row = self._connection.execute(
            "SELECT number, state, priority FROM jobs WHERE client = ? AND key = ?",
            (self._client, request.key),
        ).fetchone()
        if row is None:
            return self._insert(request)
        number, state, priority = row
        if state == JobState.WAITING and request.priority > priority:
            change = book_turns.next_change(self._connection, self._client)
            self._connection.execute(
                "UPDATE jobs SET priority = ?, change = ? WHERE number = ?",
                (request.priority, change, number),
            )
        return int(number)

    def waiting(self) -> tuple[int, int]:
        """How many jobs wait: this client's, and everybody's."""
        row = self._connection.execute(
            "SELECT (SELECT waiting FROM clients WHERE id = ?), sum(waiting) FROM clients",
            (self._client,),
        ).fetchone()
        return row[0], row[1]

    def _insert(self, request: Packed) -> int:
        if self._is_away:
            book_turns.welcome(self._connection, self._client, self._now)
            self._is_away = False
        change = book_turns.next_change(self._connection, self._client)
        inserted = self._connection.execute(
            "INSERT INTO jobs (id, client, change, key, task, request, state, priority, submitted) "
            "VALUES (?, ?, ?, ?, ?, ?, 'waiting', ?, ?)",
            (
                secrets.token_urlsafe(_ID_BYTES),
                self._client,
                change,
                request.key,
                self._task(request),
                request.rest,
                request.priority,
                self._now,
            ),
        ).lastrowid
        assert inserted is not None
        self.added += 1
        return inserted

    def _task(self, request: Packed) -> int:
        sent = request.task_sent
        if sent not in self._tasks:
            self._connection.execute(
                "INSERT OR IGNORE INTO tasks (sent, hash, content) VALUES (?, ?, ?)",
                (sent, request.task_hash, request.task),
            )
            row = self._connection.execute("SELECT id FROM tasks WHERE sent = ?", (sent,))
            self._tasks[sent] = int(row.fetchone()[0])
        return self._tasks[sent]


@dataclass(frozen=True)
class RunningJob:
    """What is needed to end a job that is running, or to have it wait again."""

    number: int
    id: str
    client: int
    client_name: str
    started: float
    charged: float
    attempts: int
    unwanted: int  # 1: cancelled meanwhile


def running_jobs(connection: sqlite3.Connection, job: str | None = None) -> list[RunningJob]:
    """This job if it is running, or all that are."""
    rows = connection.execute(
        "SELECT jobs.number, jobs.id, jobs.client, clients.name, jobs.started, jobs.charged, "
        "jobs.attempts, jobs.unwanted FROM jobs JOIN clients ON clients.id = jobs.client "
        f"WHERE jobs.state = 'running' {'AND jobs.id = ?' if job is not None else ''}",
        (job,) if job is not None else (),
    ).fetchall()
    return [RunningJob(*row) for row in rows]


def settled(connection: sqlite3.Connection, job: str, now: float) -> RunningJob | None:
    """The job if it is running; what it took is on its client's account then."""
    running = next(iter(running_jobs(connection, job)), None)
    if running is not None:
        seconds = max(0.0, now - running.started)
        book_turns.settle(connection, running.client, running.charged, seconds, now)
    return running


@dataclass(frozen=True)
class Ending:
    """How a job ends. One with a `lasting` outcome answers for its request from then on."""

    state: JobState
    outcome: Content | None = None
    lasting: bool = False


CANCELLED = Ending(JobState.CANCELLED)


def end(connection: sqlite3.Connection, job: RunningJob, ending: Ending, now: float) -> bool:
    """Whether this is the job's end: one that nobody wants any more is cancelled."""
    close(connection, job.number, job.client, CANCELLED if job.unwanted else ending, now)
    return not job.unwanted


def forget_attempt(connection: sqlite3.Connection, job: RunningJob) -> RunningJob:
    connection.execute("UPDATE jobs SET attempts = attempts - 1 WHERE number = ?", (job.number,))
    return replace(job, attempts=job.attempts - 1)


def put_back(
    connection: sqlite3.Connection, job: RunningJob, most_attempts: int, now: float
) -> bool:
    """Whether the job waits again."""
    if job.unwanted or job.attempts >= most_attempts:
        what = f"the evaluation was begun {job.attempts} times and never came to an end"
        error = JobError(kind="internal", what=what, hint="ask again; if it recurs, report it")
        end(connection, job, Ending(JobState.FAILED, packed_text(error.model_dump_json())), now)
        return False
    change = book_turns.next_change(connection, job.client)
    connection.execute(
        "UPDATE jobs SET state = 'waiting', started = NULL, charged = 0, change = ? "
        "WHERE number = ?",
        (change, job.number),
    )
    return True


def close(
    connection: sqlite3.Connection, number: int, client: int, ending: Ending, now: float
) -> None:
    change = book_turns.next_change(connection, client)
    connection.execute(
        "UPDATE jobs SET state = ?, outcome = ?, finished = ?, change = ?, request = NULL, "
        "key = CASE ? WHEN 1 THEN key END WHERE number = ?",
        (ending.state.value, ending.outcome, now, change, ending.lasting, number),
    )


def drop_ended(connection: sqlite3.Connection, before: float, most: int) -> int:
    """Drop up to `most` jobs that ended before then, the oldest first."""
    return connection.execute(
        "DELETE FROM jobs WHERE number IN (SELECT number FROM jobs INDEXED BY finished_jobs "
        "WHERE finished < ? ORDER BY finished LIMIT ?)",
        (before, most),
    ).rowcount
