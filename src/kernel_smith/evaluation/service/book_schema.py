"""The tables of the job book, and how its file is opened.

    clients   one row each: its account (fairness.py), how many jobs it has in which state, and the
              number of the last change of its jobs
    tasks     each task once, as it was sent
    jobs      one row each; `number` is the order of submission
    level     one row: the account of whoever was served last

Triggers keep the counts, so that they cannot differ from the jobs. A value of type TEXT is plain; a
BLOB is deflated. A job's `key` is empty once the job no longer answers for it, and its `request`
once nobody will evaluate it again.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from kernel_smith.evaluation.service.fairness import FIRST_GUESS
from kernel_smith.store.faults import StoreError
from kernel_smith.store.transaction import transaction

APPLICATION_ID = 0x4B536A62
VERSION = 1

_STATES = ("waiting", "running", "done", "failed", "cancelled")


def _counts(row: str, sign: str) -> str:
    return ", ".join(f"{state} = {state} {sign} ({row}.state = '{state}')" for state in _STATES)


_TABLES = (
    f"""CREATE TABLE clients (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        account REAL NOT NULL DEFAULT 0,
        pending REAL NOT NULL DEFAULT 0,
        usual REAL NOT NULL DEFAULT {FIRST_GUESS},
        seconds REAL NOT NULL DEFAULT 0,
        active_at REAL NOT NULL DEFAULT 0,
        change INTEGER NOT NULL DEFAULT 0,
        {", ".join(f"{state} INTEGER NOT NULL DEFAULT 0" for state in _STATES)}
    )""",
    "CREATE INDEX next_client ON clients (account + pending) WHERE waiting > 0",
    "CREATE INDEX active_clients ON clients (account) WHERE waiting + running > 0",
    """CREATE TABLE tasks (
        id INTEGER PRIMARY KEY,
        sent BLOB NOT NULL UNIQUE,
        hash TEXT NOT NULL,
        jobs INTEGER NOT NULL DEFAULT 0,
        content NOT NULL
    )""",
    "CREATE INDEX tasks_by_hash ON tasks (hash)",
    f"""CREATE TABLE jobs (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        client INTEGER NOT NULL REFERENCES clients (id),
        change INTEGER NOT NULL,
        key BLOB,
        task INTEGER NOT NULL REFERENCES tasks (id),
        request,
        state TEXT NOT NULL CHECK (state IN {_STATES}),
        unwanted INTEGER NOT NULL DEFAULT 0,
        priority INTEGER NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0,
        charged REAL NOT NULL DEFAULT 0,
        submitted REAL NOT NULL,
        started REAL,
        finished REAL,
        outcome,
        UNIQUE (client, key),
        CHECK ((finished IS NULL) = (state IN ('waiting', 'running'))),
        CHECK ((outcome IS NULL) = (state NOT IN ('done', 'failed'))),
        CHECK (request IS NOT NULL OR finished IS NOT NULL)
    )""",
    "CREATE INDEX next_job ON jobs (client, priority DESC, number, task) WHERE state = 'waiting'",
    "CREATE INDEX jobs_by_state ON jobs (state, number)",
    "CREATE INDEX jobs_of_client ON jobs (client, number)",
    "CREATE INDEX jobs_of_client_by_state ON jobs (client, state, number)",
    "CREATE INDEX changes ON jobs (client, change)",
    "CREATE INDEX finished_jobs ON jobs (finished) WHERE finished IS NOT NULL",
    f"""CREATE TRIGGER job_added AFTER INSERT ON jobs BEGIN
        UPDATE clients SET {_counts("NEW", "+")} WHERE id = NEW.client;
        UPDATE tasks SET jobs = jobs + 1 WHERE id = NEW.task;
    END""",
    f"""CREATE TRIGGER job_moved AFTER UPDATE OF state ON jobs BEGIN
        UPDATE clients SET {_counts("OLD", "-")} WHERE id = OLD.client;
        UPDATE clients SET {_counts("NEW", "+")} WHERE id = NEW.client;
    END""",
    f"""CREATE TRIGGER job_dropped AFTER DELETE ON jobs BEGIN
        UPDATE clients SET {_counts("OLD", "-")} WHERE id = OLD.client;
        UPDATE tasks SET jobs = jobs - 1 WHERE id = OLD.task;
        DELETE FROM tasks WHERE id = OLD.task AND jobs = 0;
    END""",
    "CREATE TABLE level (account REAL NOT NULL)",
    "INSERT INTO level VALUES (0)",
)

# The start of SQLite's message -> what it means here, and the remedy.
_MEANINGS = (
    ("database or disk is full", "the disk is full", "make room; nothing that was stored is lost"),
    ("disk I/O error", "the disk failed", "look at `df` and `ulimit -f`, then start again"),
    ("unable to open", "the file cannot be opened", "make its folder writable, or name another"),
    ("attempt to write a readonly", "the file is read-only", "make it writable, or name another"),
    ("file is not a database", "not a job book", "name another file; this one is left as it is"),
    ("Cannot operate on a closed", "the book is closed", "the service is stopping; ask it later"),
)
_DAMAGED = "move the file away and start again; clients that ask again lose nothing but time"


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what SQLite raises into a `StoreError`."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        for beginning, what, hint in _MEANINGS:
            if text.startswith(beginning):
                raise StoreError(f"{path}: {what}", hint=hint) from error
        raise StoreError(f"{path}: {text}", hint=_DAMAGED) from error


def unreadable(path: Path, what: str) -> StoreError:
    return StoreError(f"{path}: {what} cannot be read", hint=_DAMAGED)


def connect(path: Path) -> sqlite3.Connection:
    """Open the file, or make it. The caller has made sure that no other process does the same."""
    with explained(path):
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            _check(connection, path)
            connection.execute("PRAGMA journal_mode = WAL")
            # A client that was told its job is kept will not send it again: survive power failures.
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
                _create(connection)
        except BaseException:
            connection.close()
            raise
    return connection


def _check(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application == 0 and connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None:
        return
    if application != APPLICATION_ID:
        raise StoreError(
            f"{path}: an SQLite database of another program, expected a job book",
            hint="name another file; this one is left as it is",
        )
    if version > VERSION:
        raise StoreError(
            f"{path}: written by a newer kernel-smith (its tables have version {version}, this "
            f"one reads up to {VERSION})",
            hint="pip install --upgrade kernel-smith",
        )


def _create(connection: sqlite3.Connection) -> None:
    with transaction(connection):
        for statement in _TABLES:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
