"""The run store: one SQLite file, written by one process per run, readable by all meanwhile.

Every event is one transaction. Once `append` has returned, `kill -9` does not lose it; a power
failure may lose the last moments, and never damages the file (WAL, synchronous=NORMAL).
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sqlite3
import threading
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from kernel_smith.closing import Closing
from kernel_smith.errors import BadInput, why_no_file
from kernel_smith.records import Candidate, Event, RunStarted, StepProposed, content_hash
from kernel_smith.store import summary
from kernel_smith.store.encoding import decode, encode
from kernel_smith.store.faults import explained, refuse_no_file, unreadable
from kernel_smith.store.locks import RunLock, alone, is_locked
from kernel_smith.store.schema import prepare
from kernel_smith.store.summary import RunSummary
from kernel_smith.store.texts import Texts, deflate, inflate
from kernel_smith.store.transaction import transaction

LATEST = "latest"

_LONGEST_ID = 200
_PAGE = 64  # events in memory at a time while they are read


def default_path() -> Path:
    """`$KERNEL_SMITH_STORE`, or `.kernel-smith/runs.sqlite` in the current folder."""
    return Path(os.environ.get("KERNEL_SMITH_STORE") or ".kernel-smith/runs.sqlite")


class Store(Closing):
    """Safe to use from several threads."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._locks = _locks(path.absolute())
        self._texts = Texts(connection)
        self._mutex = threading.RLock()

    @classmethod
    def open(cls, path: Path | None = None, create: bool = False, patience: float = 30) -> Store:
        """Open a store; with `create`, make it where there is none.

        `patience`: seconds to wait for another process's transaction before giving up.
        """
        path = path or default_path()
        if not create:
            return cls(_connect(path, False, patience), path)
        refuse_no_file(path)
        # SQLite does not wait where two switch a new file to another journal at once.
        with alone(_locks(path) / "creating.lock"):
            return cls(_connect(path, True, patience), path)

    def close(self) -> None:
        with self._mutex, explained(self._path):
            self._connection.close()

    def append(self, run_id: str, event: Event) -> int:
        """Store an event and answer with its sequence number: 1, 2, ... within its run.

        The first event of a run is its `RunStarted`.
        """
        with self._transaction() as connection:
            if isinstance(event, RunStarted):
                self._check_new(run_id, event)
                summary.start(connection, run_id, event)
            run, sequence = self._next(run_id, event)
            body = encode(event, lambda kind, text: self._texts.keep(run, kind, text))
            if isinstance(event, StepProposed):
                self._note_candidate(
                    event.proposal.candidate, body["proposal"]["candidate"]["source"]
                )
            text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
            connection.execute(
                "INSERT INTO events VALUES (?, ?, ?, ?, ?)",
                (run, sequence, event.kind, body.get("step"), deflate(text, text.encode())),
            )
            summary.update(connection, run, sequence, event)
        return sequence

    def events(
        self, run_id: str, after: int = 0, kinds: Collection[str] = ()
    ) -> Iterator[tuple[int, Event]]:
        """Yield the events of a run with a sequence number above `after`, in order.

        `kinds`: only these; all if none is named. Reads page by page: memory stays flat, and
        writers are not held up. Events that are appended meanwhile are included.
        """
        run, _ = self._run(run_id)
        wanted = f"AND kind IN ({', '.join('?' * len(kinds))}) " if kinds else ""
        statement = (
            f"SELECT sequence, body FROM events WHERE run = ? AND sequence > ? {wanted}"
            f"ORDER BY sequence LIMIT {_PAGE}"
        )
        while True:
            with self._mutex, explained(self._path):
                rows = self._connection.execute(statement, (run, after, *kinds)).fetchall()
            if not rows:
                return
            for after, stored in rows:
                yield after, self._decode(stored, f"event {after} of run {run_id}")

    def event(self, run_id: str, sequence: int) -> Event:
        """Return the one event with this number."""
        run, last = self._run(run_id)
        with self._mutex, explained(self._path):
            row = self._connection.execute(
                "SELECT body FROM events WHERE run = ? AND sequence = ?", (run, sequence)
            ).fetchone()
        if row is None:
            raise BadInput(
                f"{self._path}: run {run_id} has no event {sequence}, expected 1 to {last}",
                hint=self._command("show", run_id),
            )
        return self._decode(row[0], f"event {sequence} of run {run_id}")

    def runs(self) -> list[RunSummary]:
        """Return every run, the newest first. Parses no event."""
        with self._mutex, explained(self._path):
            return summary.read(self._connection, lambda run: is_locked(self._lock_path(run)))

    def run_ids_matching(self, prefix: str) -> list[str]:
        """Return the runs whose id starts like this, the newest first."""
        with self._mutex, explained(self._path):
            rows = self._connection.execute("SELECT name FROM runs ORDER BY id DESC").fetchall()
        return [name for (name,) in rows if name.startswith(prefix)]

    def find_run(self, wanted: str) -> str:
        """Return the run that an id, the unique beginning of one, or `latest` means."""
        known = self.run_ids_matching("")
        if not known:
            raise BadInput(
                f"{self._path}: holds no run", hint="start one: kernel-smith optimize TASK"
            )
        matching = known[:1] if wanted == LATEST else self.run_ids_matching(wanted)
        if wanted in matching or len(matching) == 1:
            return wanted if wanted in matching else matching[0]
        if not matching:
            raise BadInput(
                f"{self._path}: no run is called {wanted!r}, expected an id, its beginning or "
                f"`{LATEST}`",
                hint=self._command("list"),
            )
        shown = ", ".join(matching[:5]) + (", ..." if len(matching) > 5 else "")
        raise BadInput(f"{wanted!r} may be {shown}", hint="write more of the id")

    def candidate(self, wanted: str) -> Candidate:
        """Return a stored program by its hash."""
        with self._mutex, explained(self._path):
            row = None
            with contextlib.suppress(ValueError):
                row = self._connection.execute(
                    "SELECT backend, name, source FROM candidates WHERE hash = ?",
                    (bytes.fromhex(wanted),),
                ).fetchone()
            if row is None:
                raise BadInput(
                    f"{self._path}: no candidate has the hash {wanted!r}",
                    hint=f"{self._command('lineage', 'RUN')} shows hashes of a run",
                )
            return Candidate(backend=row[0], name=row[1], source=self._texts.fetch(row[2]))

    def lock(self, run_id: str) -> RunLock:
        """Become the one writer of a run, until released or until this process ends."""
        return RunLock.take(self._lock_path(_checked(run_id)), run_id)

    def _command(self, *words: str) -> str:
        """Return a command about runs, which names this store where it is not the usual one."""
        where = [] if self._path == default_path() else ["--store", str(self._path)]
        return shlex.join(["kernel-smith", "runs", *words, *where])

    def _lock_path(self, run_id: str) -> Path:
        # Not every id would do as the name of a file.
        name = f"{content_hash(run_id)[:16]}.lock"
        return self._locks / name

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._mutex, explained(self._path):
            try:
                with transaction(self._connection):
                    yield self._connection
            except BaseException:
                self._texts.forget()
                raise

    def _run(self, run_id: str) -> tuple[int, int]:
        """Return a run's key and its last sequence number."""
        with self._mutex, explained(self._path):
            row = self._connection.execute(
                "SELECT id, sequence FROM runs WHERE name = ?", (run_id,)
            ).fetchone()
        return self._found(run_id, row)

    def _next(self, run_id: str, event: Event) -> tuple[int, int]:
        """A run's key and the sequence number of its next event, which is counted herewith."""
        return self._found(run_id, summary.count(self._connection, run_id, event))

    def _found(self, run_id: str, row: tuple[int, int] | None) -> tuple[int, int]:
        if row is None:
            what = f"{self._path}: no run is called {run_id!r}"
            raise BadInput(what, hint=self._command("list"))
        return row

    def _check_new(self, run_id: str, event: RunStarted) -> None:
        if event.run != _checked(run_id):
            raise ValueError(f"run {run_id} cannot start with the first event of {event.run}")
        if self._connection.execute("SELECT 1 FROM runs WHERE name = ?", (run_id,)).fetchone():
            raise BadInput(
                f"{self._path}: a run called {run_id} exists",
                hint=f"choose another id, or look at it: {self._command('show', run_id)}",
            )

    def _note_candidate(self, candidate: Candidate, source: int) -> None:
        self._connection.execute(
            "INSERT OR IGNORE INTO candidates VALUES (?, ?, ?, ?)",
            (bytes.fromhex(candidate.content_hash), candidate.backend, candidate.name, source),
        )

    def _decode(self, stored: str | bytes, where: str) -> Event:
        with self._mutex, explained(self._path):
            try:
                body: dict[str, Any] = json.loads(inflate(stored))
                return decode(body, self._texts.fetch)
            except (ValueError, KeyError, TypeError, zlib.error) as error:
                raise unreadable(self._path, where) from error


def _checked(run_id: str) -> str:
    usable = run_id.isprintable() and 0 < len(run_id) <= _LONGEST_ID
    if not usable or run_id.startswith("-") or run_id == LATEST:
        raise BadInput(
            f"{run_id!r} cannot be a run's id, expected up to {_LONGEST_ID} printable characters, "
            f"not starting with '-', and not `{LATEST}`",
            hint="choose another id, or rename the task if the id was made from it",
        )
    return run_id


def _connect(path: Path, create: bool, patience: float) -> sqlite3.Connection:
    if not create and not os.path.isfile(path):  # False also for names that no file can have
        raise BadInput(
            f"{path}: {why_no_file(path)}, expected a run store",
            hint="start a run: kernel-smith optimize TASK; or set KERNEL_SMITH_STORE to the file "
            "of a run",
        )
    address = f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
    if _is_archived(path):
        address = f"{path.absolute().as_uri()}?immutable=1"
    with explained(path):
        connection = sqlite3.connect(
            address, uri=True, timeout=patience, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA foreign_keys = ON")
            prepare(connection, path, create=create)
        except BaseException:
            connection.close()
            raise
    return connection


def _locks(path: Path) -> Path:
    return path.with_name(f"{path.name}-locks")


def _is_archived(path: Path) -> bool:
    """A complete store in a read-only folder: SQLite could not put its helper files beside it."""
    if not path.is_file() or os.access(path.parent, os.W_OK, effective_ids=True):
        return False
    return not path.with_name(f"{path.name}-wal").exists()
