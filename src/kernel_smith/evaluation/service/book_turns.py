"""Taking jobs in fair order, and settling what they cost; inside a transaction of the job book."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from kernel_smith.evaluation.service.fairness import account_on_return, charge, usual_seconds

# How many submissions later a job may have come and still overtake one of the same client and
# priority, because its task is ready. Nobody is overtaken more often than that.
OVERTAKING = 256

NEXT_CLIENT = (
    "SELECT id, account, usual FROM clients INDEXED BY next_client WHERE waiting > 0 "
    "ORDER BY account + pending LIMIT 1"
)
LEAST_SERVED = (
    "SELECT account FROM clients INDEXED BY active_clients WHERE waiting + running > 0 "
    "ORDER BY account LIMIT 1"
)
NEXT_JOB = (
    "SELECT number, priority FROM jobs INDEXED BY next_job WHERE state = 'waiting' AND client = ? "
    "ORDER BY priority DESC, number LIMIT 1"
)
PREFERRED_JOB = (
    "SELECT number FROM jobs INDEXED BY next_job WHERE state = 'waiting' AND client = ? "
    "AND priority = ? AND number BETWEEN ? AND ? AND task IN "
    "(SELECT id FROM tasks WHERE hash IN (SELECT value FROM json_each(?))) ORDER BY number LIMIT 1"
)
TAKEN_JOB = (
    "SELECT jobs.id, tasks.content, jobs.request, jobs.attempts, clients.name FROM jobs "
    "JOIN tasks ON tasks.id = jobs.task JOIN clients ON clients.id = jobs.client "
    "WHERE jobs.number = ?"
)


@dataclass(frozen=True)
class TakenRow:
    id: str
    task: str | bytes
    rest: str | bytes
    attempt: int
    client: str


def take_next(connection: sqlite3.Connection, prefer: str | None, now: float) -> TakenRow | None:
    """The next job, now running, or None where nothing waits.

    `prefer`: hashes of tasks that are ready, as a JSON list.
    """
    row = connection.execute(NEXT_CLIENT).fetchone()
    if row is None:
        return None
    client, account, usual = row
    number = _choose(connection, client, prefer)
    cost = charge(usual)
    connection.execute(
        "UPDATE jobs SET state = 'running', attempts = attempts + 1, charged = ?, started = ?, "
        "change = ? WHERE number = ?",
        (cost, now, next_change(connection, client), number),
    )
    connection.execute("UPDATE clients SET pending = pending + ? WHERE id = ?", (cost, client))
    connection.execute("UPDATE level SET account = max(account, ?)", (account,))
    return TakenRow(*connection.execute(TAKEN_JOB, (number,)).fetchone())


def _choose(connection: sqlite3.Connection, client: int, prefer: str | None) -> int:
    first, priority = connection.execute(NEXT_JOB, (client,)).fetchone()
    if prefer is not None:
        reach = (client, priority, first, first + OVERTAKING, prefer)
        preferred = connection.execute(PREFERRED_JOB, reach).fetchone()
        if preferred is not None:
            return int(preferred[0])
    return int(first)


def welcome(connection: sqlite3.Connection, client: int, now: float) -> None:
    """A client without jobs is about to have some."""
    account, active_at = connection.execute(
        "SELECT account, active_at FROM clients WHERE id = ?", (client,)
    ).fetchone()
    least_served = connection.execute(LEAST_SERVED).fetchone()
    (start,) = least_served or connection.execute("SELECT account FROM level").fetchone()
    connection.execute(
        "UPDATE clients SET account = ?, active_at = ? WHERE id = ?",
        (account_on_return(account, start, now - active_at), now, client),
    )


def settle(
    connection: sqlite3.Connection, client: int, charged: float, seconds: float, now: float
) -> None:
    """Replace what is pending for a job by what it took."""
    cost = charge(seconds)
    (usual,) = connection.execute("SELECT usual FROM clients WHERE id = ?", (client,)).fetchone()
    connection.execute(
        "UPDATE clients SET account = account + ?, pending = pending - ?, usual = ?, "
        "seconds = seconds + ?, active_at = ? WHERE id = ?",
        (cost, charged, usual_seconds(usual, cost), seconds, now, client),
    )


def refund(connection: sqlite3.Connection, client: int, charged: float) -> None:
    """Nobody knows how long the job took, and it was not its client's fault."""
    connection.execute("UPDATE clients SET pending = pending - ? WHERE id = ?", (charged, client))


def next_change(connection: sqlite3.Connection, client: int) -> int:
    """The number of a change. Each client has its own: nobody sees how busy others are."""
    connection.execute("UPDATE clients SET change = change + 1 WHERE id = ?", (client,))
    row = connection.execute("SELECT change FROM clients WHERE id = ?", (client,)).fetchone()
    return int(row[0])
