"""The tables, and how a file gets from one version of them to the next.

    runs         one row per run, kept up to date with every event, so that listing is cheap
    events       append-only; (run, sequence) is the key
    candidates   programs by content; the source is a text
    texts        everything long, once per content: sources, evaluations, messages, responses
    bases        run, kind -> the text that later texts of this kind are compressed against
    scores       what the last measurement of a candidate said, and whether it confirmed that it is
                 faster; one of those that compile to the same (`binary`)
    migrations   which version of these tables was made when

A value of type TEXT is plain; a BLOB is deflated.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from kernel_smith.store.faults import StoreError
from kernel_smith.store.transaction import transaction

APPLICATION_ID = 0x4B536D68

_FIRST = (
    """CREATE TABLE migrations (
        version INTEGER PRIMARY KEY,
        at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
    )""",
    """CREATE TABLE runs (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        task TEXT NOT NULL,
        backend TEXT NOT NULL,
        started TEXT NOT NULL,
        last TEXT NOT NULL,
        ended TEXT,
        sequence INTEGER NOT NULL DEFAULT 0,
        evaluations INTEGER NOT NULL DEFAULT 0
    )""",
    """CREATE TABLE texts (
        id INTEGER PRIMARY KEY,
        hash BLOB NOT NULL UNIQUE,
        base INTEGER REFERENCES texts (id),
        content NOT NULL
    )""",
    """CREATE TABLE bases (
        run INTEGER NOT NULL REFERENCES runs (id),
        kind TEXT NOT NULL,
        text INTEGER NOT NULL REFERENCES texts (id),
        PRIMARY KEY (run, kind)
    ) WITHOUT ROWID""",
    """CREATE TABLE candidates (
        hash BLOB PRIMARY KEY,
        backend TEXT NOT NULL,
        name TEXT NOT NULL,
        source INTEGER NOT NULL REFERENCES texts (id)
    ) WITHOUT ROWID""",
    """CREATE TABLE events (
        run INTEGER NOT NULL REFERENCES runs (id),
        sequence INTEGER NOT NULL,
        kind TEXT NOT NULL,
        step INTEGER,
        body NOT NULL,
        PRIMARY KEY (run, sequence)
    ) WITHOUT ROWID""",
    """CREATE TABLE scores (
        run INTEGER NOT NULL REFERENCES runs (id),
        candidate BLOB NOT NULL,
        sequence INTEGER NOT NULL,
        value REAL NOT NULL,
        low REAL NOT NULL,
        high REAL NOT NULL,
        PRIMARY KEY (run, candidate)
    ) WITHOUT ROWID""",
    "CREATE INDEX best_scores ON scores (run, low DESC, sequence)",
)

_CONFIRMING = (
    "ALTER TABLE runs ADD COLUMN ended_with BLOB",
    "ALTER TABLE scores ADD COLUMN binary TEXT",
    "ALTER TABLE scores ADD COLUMN confirmed INTEGER NOT NULL DEFAULT FALSE",
)

# Else each evaluation would look at all programs of its run.
_TWINS = ("CREATE INDEX twins ON scores (run, binary) WHERE binary IS NOT NULL",)

# The statements that lead from version N to N + 1, in order. Never change one that was released.
MIGRATIONS: tuple[tuple[str, ...], ...] = (_FIRST, _CONFIRMING, _TWINS)


def prepare(connection: sqlite3.Connection, path: Path, *, create: bool) -> None:
    """Check that the file is a store that this version reads; bring its tables up to date."""
    version = _check(connection, path, create=create)
    if version == len(MIGRATIONS):
        return
    if version == 0:
        # Readers and one writer at a time do not wait for each other.
        connection.execute("PRAGMA journal_mode = WAL")
    with transaction(connection):
        # Another process may have done it meanwhile.
        for number in range(_version(connection), len(MIGRATIONS)):
            for statement in MIGRATIONS[number]:
                connection.execute(statement)
            connection.execute("INSERT INTO migrations (version) VALUES (?)", (number + 1,))
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _check(connection: sqlite3.Connection, path: Path, *, create: bool) -> int:
    version = _version(connection)
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application == 0 and version == 0 and _is_empty(connection):
        if create:
            return 0
        what = f"{path}: an empty file, expected a run store"
        raise StoreError(what, hint="remove it; the next run makes a new one")
    if application != APPLICATION_ID:
        raise StoreError(
            f"{path}: an SQLite database of another program, expected a run store",
            hint="set KERNEL_SMITH_STORE to the file of a run",
        )
    if version > len(MIGRATIONS):
        raise StoreError(
            f"{path}: written by a newer kernel-smith (its tables have version {version}, "
            f"this one reads up to {len(MIGRATIONS)})",
            hint="pip install --upgrade kernel-smith",
        )
    return version


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _is_empty(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None
