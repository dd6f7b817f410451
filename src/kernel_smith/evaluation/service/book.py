"""The job book: a durable queue of evaluations, shared fairly between clients.

Every operation is one transaction. Once it has returned, neither `kill -9` nor a power failure
loses it. A job is answered once: a final state is never overwritten. One process owns a book, and
all its threads may use it.
"""

from __future__ import annotations

import json
import math
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from kernel_smith.closing import Closing
from kernel_smith.evaluation.service import book_moves, book_turns
from kernel_smith.evaluation.service.book_file import BookFile, Row
from kernel_smith.evaluation.service.book_moves import Ending
from kernel_smith.evaluation.service.book_rows import (
    WHOLE,
    WITHOUT_EVALUATION,
    job_of,
    json_of,
    pack,
    packed_text,
    unpack,
)
from kernel_smith.evaluation.service.book_schema import unreadable
from kernel_smith.evaluation.service.book_terms import (
    DEFAULT_LIMITS,
    BookLimits,
    ClientUse,
    QueueFull,
    Taken,
    UnknownJob,
)
from kernel_smith.evaluation.service.throughput import Throughput
from kernel_smith.records import Evaluation
from kernel_smith.records.job import Job, JobError, JobRequest, JobState

Read = TypeVar("Read")

_PURGED_AT_ONCE = 500  # jobs in a transaction, so that others need not wait long
_LONGEST_STREAM = 256  # changes in one answer

_OF_CLIENT = "FROM jobs JOIN clients ON clients.id = jobs.client WHERE clients.name = ?"

__all__ = ["BookLimits", "ClientUse", "JobBook", "QueueFull", "Taken", "UnknownJob"]


class JobBook(Closing):
    """`with JobBook.open(path) as book: book.submit("somebody", request)`."""

    def __init__(self, file: BookFile, limits: BookLimits, clock: Callable[[], float]) -> None:
        self._file = file
        self._limits = limits
        self._clock = clock
        self._throughput = Throughput()
        self._taken_here: set[str] = set()
        self._listeners: list[Callable[[], None]] = []

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        limits: BookLimits = DEFAULT_LIMITS,
        clock: Callable[[], float] = time.time,
    ) -> JobBook:
        """Become the owner of a book, which is made where there is none."""
        book = cls(BookFile(path), limits, clock)
        try:
            book.recover()
        except BaseException:
            book.close()
            raise
        return book

    def close(self) -> None:
        self._file.close()

    def on_waiting(self, listener: Callable[[], None]) -> None:
        """Have this called, by any thread, whenever there may be something to take."""
        self._listeners.append(listener)

    # What clients ask for

    def submit(self, client: str, request: JobRequest) -> Job:
        """The client's job for this request: a new one, unless it has one that answers for it.

        One that failed or was cancelled does not, nor one whose evaluation might end differently.
        """
        return self.submit_many(client, [request])[0]

    def submit_many(self, client: str, requests: Sequence[JobRequest]) -> list[Job]:
        """The jobs for these requests, in their order; none is submitted if one cannot be."""
        packed = [pack(request) for request in requests]
        with self._file.transaction() as connection:
            entry = book_moves.Entry(connection, client, self._clock())
            numbers = [entry.number_for(one) for one in packed]
            if entry.added:
                self._check_room(*entry.waiting())
            statement = f"SELECT {WHOLE} FROM jobs WHERE number = ?"
            rows = [connection.execute(statement, (number,)).fetchone() for number in numbers]
        self._announce({client}, waiting=True)
        return [self._job(row) for row in rows]

    def cancel(self, client: str, job: str) -> Job:
        """A waiting job ends at once; the answer of a running one is thrown away when it comes."""
        with self._file.transaction() as connection:
            row = connection.execute(
                f"SELECT jobs.number, jobs.client, jobs.state {_OF_CLIENT} AND jobs.id = ?",
                (client, job),
            ).fetchone()
            if row is None:
                raise UnknownJob(job)
            number, owner, state = row
            if state == JobState.WAITING:
                now = self._clock()
                book_moves.close(connection, number, owner, book_moves.CANCELLED, now)
            elif state == JobState.RUNNING:
                # Without its key, the same request is a new job from now on.
                connection.execute(
                    "UPDATE jobs SET unwanted = 1, key = NULL WHERE number = ?", (number,)
                )
        self._announce({client})
        return self.get(client, job)

    def get(self, client: str, job: str) -> Job:
        return self._job(self._row(client, job))

    def whole(self, client: str, jobs: Sequence[str]) -> list[str | None]:
        """These jobs with their evaluations, as JSON; None for what is not the client's."""
        statement = f"SELECT {WHOLE} {_OF_CLIENT} AND jobs.id = ?"
        rows = [self._file.row(statement, client, job) for job in jobs]
        return [self._read(row, json_of) if row is not None else None for row in rows]

    def jobs(
        self,
        client: str,
        *,
        state: JobState | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> list[Job]:
        """The client's jobs without their evaluations, oldest first; `after` is a job's id."""
        number = 0
        if after is not None:
            row = self._file.row(f"SELECT jobs.number {_OF_CLIENT} AND jobs.id = ?", client, after)
            if row is None:
                raise UnknownJob(after)
            number = row[0]
        filtered = "AND jobs.state = ?" if state else ""
        rows = self._file.rows(
            f"SELECT {WITHOUT_EVALUATION} {_OF_CLIENT} AND jobs.number > ? {filtered} "
            "ORDER BY jobs.number LIMIT ?",
            *(client, number, *([state.value] if state else []), limit),
        )
        return [self._job(row) for row in rows]

    def wait(self, client: str, job: str, timeout: float) -> Job:
        """The job once it has ended, or as it is when the time is over."""
        row = self._row(client, job)

        def has_ended() -> bool:
            nonlocal row
            row = self._row(client, job)
            return JobState(row[1]).final

        self._file.until(client, timeout, has_ended)
        return self._job(row)

    def changes(self, client: str, after: int, timeout: float) -> list[tuple[int, Job]]:
        """Jobs that changed since change number `after`, without evaluations; waits for some.

        A job is listed once, as it is now, under the number of its last change.
        """
        rows: list[Row] = []

        def has_changed() -> bool:
            rows[:] = self._file.rows(
                f"SELECT jobs.change, {WITHOUT_EVALUATION} {_OF_CLIENT} AND jobs.change > ? "
                f"ORDER BY jobs.change LIMIT {_LONGEST_STREAM}",
                *(client, after),
            )
            return bool(rows)

        self._file.until(client, timeout, has_changed)
        return [(row[0], self._job(row[1:])) for row in rows]

    def last_change(self, client: str) -> int:
        """The number of the client's last change; 0 before the first."""
        row = self._file.row("SELECT change FROM clients WHERE name = ?", client)
        return int(row[0]) if row else 0

    # What whoever evaluates asks for

    def take(self, count: int, prefer: Collection[str] = ()) -> list[Taken]:
        """Up to `count` jobs to evaluate now, in fair order (fairness.py).

        Within a client the higher priority comes first, then the earlier submission; a job whose
        task's content hash is in `prefer` may overtake some of the same priority.
        """
        rows: list[book_turns.TakenRow] = []
        preferred = json.dumps(list(prefer)) if prefer else None
        with self._file.transaction() as connection:
            now = self._clock()
            while len(rows) < count:
                row = book_turns.take_next(connection, preferred, now)
                if row is None:
                    break
                rows.append(row)
            self._taken_here.update(row.id for row in rows)
        self._announce({row.client for row in rows})
        return [taken for row in rows if (taken := self._unpacked(row)) is not None]

    def finish(self, job: str, evaluation: Evaluation) -> bool:
        """Whether this became the job's answer."""
        return self.end_many([(job, evaluation)])[0]

    def fail(self, job: str, error: JobError) -> bool:
        """Whether this became the job's answer."""
        return self.end_many([(job, error)])[0]

    def end_many(self, outcomes: Sequence[tuple[str, Evaluation | JobError]]) -> list[bool]:
        """Whether each became the answer of its job; many at once cost far less than one by one."""
        packed = [(job, _ending_of(outcome)) for job, outcome in outcomes]
        counted: list[bool] = []
        clients: list[str] = []
        with self._file.transaction() as connection:
            now = self._clock()
            for job, ending in packed:
                running = book_moves.settled(connection, job, now)
                counted.append(
                    running is not None and book_moves.end(connection, running, ending, now)
                )
                if running is not None:
                    clients.append(running.client_name)
        self._taken_here.difference_update(job for job, _ in outcomes)
        for _ in clients:
            self._throughput.note_end()
        self._announce(set(clients))
        return counted

    def give_back(self, job: str, *, counts: bool = True) -> bool:
        """Whether the job waits again; it does not when it was begun too often, or cancelled.

        An attempt that `counts` not is one that the job had no part in ending.
        """
        waits = False
        with self._file.transaction() as connection:
            now = self._clock()
            running = book_moves.settled(connection, job, now)
            if running is not None:
                if not counts:
                    running = book_moves.forget_attempt(connection, running)
                waits = book_moves.put_back(connection, running, self._limits.attempts, now)
        self._taken_here.discard(job)
        if running is not None:
            self._announce({running.client_name}, waiting=waits)
        return waits

    # Housekeeping

    def recover(self) -> int:
        """Put back what a process that died was evaluating; the number of those jobs."""
        with self._file.transaction() as connection:
            now = self._clock()
            running = book_moves.running_jobs(connection)
            orphans = [job for job in running if job.id not in self._taken_here]
            for orphan in orphans:
                book_turns.refund(connection, orphan.client, orphan.charged)
                book_moves.put_back(connection, orphan, self._limits.attempts, now)
        self._announce({orphan.client_name for orphan in orphans}, waiting=True)
        return len(orphans)

    def purge(self) -> int:
        """Drop jobs that ended long ago, or are too many; their number."""
        dropped = 0
        while True:
            with self._file.transaction() as connection:
                before = self._clock() - self._limits.keep_seconds
                batch = book_moves.drop_ended(connection, before, _PURGED_AT_ONCE)
                ended = sum(number for state, number in self.counts().items() if state.final)
                too_many = min(max(0, ended - self._limits.keep_jobs), _PURGED_AT_ONCE)
                if too_many:
                    batch += book_moves.drop_ended(connection, math.inf, too_many)
            dropped += batch
            if batch == 0:
                return dropped

    def counts(self) -> dict[JobState, int]:
        sums = ", ".join(f"coalesce(sum({state.value}), 0)" for state in JobState)
        row = self._file.row(f"SELECT {sums} FROM clients")
        assert row is not None
        return dict(zip(JobState, row, strict=True))

    def clients(self) -> dict[str, ClientUse]:
        rows = self._file.rows(f"SELECT name, {', '.join(ClientUse._fields)} FROM clients")
        return {row[0]: ClientUse(*row[1:]) for row in rows}

    def oldest_waiting_seconds(self) -> float:
        """How long the oldest waiting job has waited; 0 where none does."""
        row = self._file.row(
            "SELECT submitted FROM jobs WHERE state = 'waiting' ORDER BY number LIMIT 1"
        )
        return max(0.0, self._clock() - row[0]) if row else 0.0

    # Inside

    def _check_room(self, of_client: int, of_all: int) -> None:
        limits = self._limits
        excess = max(of_client - limits.waiting_per_client, of_all - limits.waiting)
        if excess > 0:
            what = f"{of_client} of this client's jobs and {of_all} in all would be waiting"
            raise QueueFull(what, self._throughput.seconds_for(excess))

    def _unpacked(self, row: book_turns.TakenRow) -> Taken | None:
        try:
            return Taken(row.id, unpack(row.task, row.rest), row.attempt)
        except (ValueError, zlib.error):
            what = "the stored request cannot be read: damaged, or of another version"
            self.fail(row.id, JobError(kind="internal", what=what, hint="ask again"))
            return None

    def _row(self, client: str, job: str) -> Row:
        row = self._file.row(f"SELECT {WHOLE} {_OF_CLIENT} AND jobs.id = ?", client, job)
        if row is None:
            raise UnknownJob(job)
        return row

    def _job(self, row: Row) -> Job:
        return self._read(row, job_of)

    def _read(self, row: Row, reader: Callable[[Row], Read]) -> Read:
        try:
            return reader(row)
        except (ValueError, zlib.error) as error:
            raise unreadable(self._file.path, f"job {row[0]}") from error

    def _announce(self, clients: Iterable[str], *, waiting: bool = False) -> None:
        for client in clients:
            self._file.announce(client)
        if waiting:
            for listener in self._listeners:
                listener()


def _ending_of(outcome: Evaluation | JobError) -> Ending:
    text = packed_text(outcome.model_dump_json())
    if isinstance(outcome, Evaluation):
        return Ending(JobState.DONE, text, lasting=not outcome.stage.fleeting)
    return Ending(JobState.FAILED, text)
