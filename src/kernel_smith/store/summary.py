"""A run in one line, from columns that are kept up to date with every event."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import datetime
from typing import Literal

from pydantic import Field

from kernel_smith.records import (
    Event,
    Interval,
    Record,
    Remeasured,
    RunEnded,
    RunResumed,
    RunStarted,
    StepEvaluated,
    score,
)


class RunSummary(Record):
    id: str
    task: str
    backend: str
    state: Literal["running", "ended", "interrupted"]
    events: int
    evaluations: int = Field(description="steps that were evaluated; measuring again not counted")
    best: Interval | None = Field(description="the best candidate's speedup by its last measuring")
    best_candidate: str | None
    started: datetime
    last: datetime = Field(description="when the last event was stored")
    ended: datetime | None


def start(connection: sqlite3.Connection, name: str, event: RunStarted) -> None:
    at = event.at.isoformat()
    connection.execute(
        "INSERT INTO runs (name, task, backend, started, last) VALUES (?, ?, ?, ?, ?)",
        (name, event.task.name, event.config.backend, at, at),
    )


def count(connection: sqlite3.Connection, name: str, event: Event) -> tuple[int, int] | None:
    """Note that a run has one event more; its key and that event's number, if there is the run."""
    row: tuple[int, int] | None = connection.execute(
        "UPDATE runs SET sequence = sequence + 1, last = ?, evaluations = evaluations + ? "
        "WHERE name = ? RETURNING id, sequence",
        (event.at.isoformat(), isinstance(event, StepEvaluated), name),
    ).fetchone()
    return row


def update(connection: sqlite3.Connection, run: int, sequence: int, event: Event) -> None:
    """What else an event changes in the summary of its run."""
    if isinstance(event, StepEvaluated | Remeasured):
        _update_score(connection, run, sequence, event)
    elif isinstance(event, RunEnded | RunResumed):
        ended = event.at.isoformat() if isinstance(event, RunEnded) else None
        connection.execute("UPDATE runs SET ended = ? WHERE id = ?", (ended, run))


def _update_score(
    connection: sqlite3.Connection, run: int, sequence: int, event: StepEvaluated | Remeasured
) -> None:
    evaluation = event.evaluation
    candidate = bytes.fromhex(evaluation.candidate_hash)
    if score(evaluation) > 0 and evaluation.timing is not None:
        speedup = evaluation.timing.speedup
        connection.execute(
            "INSERT INTO scores VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
            "value = excluded.value, low = excluded.low, high = excluded.high",
            (run, candidate, sequence, speedup.value, speedup.low, speedup.high),
        )
    else:
        statement = "DELETE FROM scores WHERE run = ? AND candidate = ?"
        connection.execute(statement, (run, candidate))


_COLUMNS = "id, name, task, backend, sequence, evaluations, started, last, ended"
_BEST = (
    "SELECT candidate, value, low, high FROM scores WHERE run = ? "
    "ORDER BY low DESC, sequence LIMIT 1"
)


def read(connection: sqlite3.Connection, is_running: Callable[[str], bool]) -> list[RunSummary]:
    """Every run, the newest first."""
    summaries = []
    for row in connection.execute(f"SELECT {_COLUMNS} FROM runs ORDER BY id DESC").fetchall():
        run, name, task, backend, sequence, evaluations, started, last, ended = row
        best = connection.execute(_BEST, (run,)).fetchone()
        summaries.append(
            RunSummary(
                id=name,
                task=task,
                backend=backend,
                state="ended" if ended else "running" if is_running(name) else "interrupted",
                events=sequence,
                evaluations=evaluations,
                best=Interval(value=best[1], low=best[2], high=best[3]) if best else None,
                best_candidate=best[0].hex() if best else None,
                started=started,
                last=last,
                ended=ended,
            )
        )
    return summaries
