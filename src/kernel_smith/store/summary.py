"""A run in one line, from columns that are kept up to date with every event."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import datetime
from typing import Literal

from pydantic import Field

from kernel_smith.records import (
    Evaluation,
    Event,
    Interval,
    Record,
    Remeasured,
    RunEnded,
    RunResumed,
    RunStarted,
    Stage,
    StepEvaluated,
    StepProposed,
    score,
    shown_faster,
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
    confirmed: bool = Field(
        description="was it measured at full length after it had been chosen, and shown to be "
        "faster than eager and torch.compile?"
    )
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
    # A run that goes on no longer ends with anything.
    goes_on = isinstance(event, StepProposed | RunResumed)
    row: tuple[int, int] | None = connection.execute(
        "UPDATE runs SET sequence = sequence + 1, last = ?, evaluations = evaluations + ?, "
        "ended_with = iif(?, NULL, ended_with) WHERE name = ? RETURNING id, sequence",
        (event.at.isoformat(), isinstance(event, StepEvaluated), goes_on, name),
    ).fetchone()
    return row


def update(connection: sqlite3.Connection, run: int, sequence: int, event: Event) -> None:
    """What else an event changes in the summary of its run.

    Who is the best follows the rule of `Ranking`, in the words of SQL.
    """
    match event:
        case StepEvaluated():
            _evaluated(connection, run, sequence, event)
        case Remeasured():
            _remeasured(connection, run, event)
        case RunEnded():
            ended_with = None if event.best is None else bytes.fromhex(event.best)
            statement = "UPDATE runs SET ended = ?, ended_with = ? WHERE id = ?"
            connection.execute(statement, (event.at.isoformat(), ended_with, run))
        case RunResumed():
            connection.execute("UPDATE runs SET ended = NULL WHERE id = ?", (run,))


def _evaluated(
    connection: sqlite3.Connection, run: int, sequence: int, event: StepEvaluated
) -> None:
    """One that compiles to the same as an earlier one is no other program."""
    evaluation = event.evaluation
    candidate = bytes.fromhex(evaluation.candidate_hash)
    if not evaluation.ok or _has_twin(connection, run, evaluation.binary, candidate):
        return
    connection.execute(
        "INSERT INTO scores (run, candidate, sequence, value, low, high, binary) "
        "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
        "value = excluded.value, low = excluded.low, high = excluded.high",
        (run, candidate, sequence, *_figures(evaluation), evaluation.binary),
    )


def _has_twin(
    connection: sqlite3.Connection, run: int, binary: str | None, candidate: bytes
) -> bool:
    if binary is None:
        return False
    statement = "SELECT 1 FROM scores WHERE run = ? AND binary = ? AND candidate != ?"
    return connection.execute(statement, (run, binary, candidate)).fetchone() is not None


def _remeasured(connection: sqlite3.Connection, run: int, event: Remeasured) -> None:
    if event.evaluation.stage is Stage.UNSTABLE:
        confirmed = "confirmed = FALSE"  # the figures stay
        figures: tuple[float, ...] = ()
    else:
        confirmed = "value = ?, low = ?, high = ?, confirmed = ?"
        figures = (*_figures(event.evaluation), event.confirming and shown_faster(event.evaluation))
    connection.execute(
        f"UPDATE scores SET {confirmed} WHERE run = ? AND candidate = ?",
        (*figures, run, bytes.fromhex(event.candidate)),
    )


def _figures(evaluation: Evaluation) -> tuple[float, float, float]:
    """Zeros for one that was wrong, or not timed: it stays known, for the sake of its twins."""
    if score(evaluation) <= 0 or evaluation.timing is None:
        return 0.0, 0.0, 0.0
    speedup = evaluation.timing.speedup
    return speedup.value, speedup.low, speedup.high


_COLUMNS = "id, name, task, backend, sequence, evaluations, started, last, ended, ended_with"
_BEST = (
    "SELECT candidate, value, low, high, confirmed FROM scores "
    "WHERE run = ? AND low > 0 AND candidate = coalesce(?, candidate) "
    "ORDER BY low DESC, sequence LIMIT 1"
)


def read(connection: sqlite3.Connection, is_running: Callable[[str], bool]) -> list[RunSummary]:
    """Return every run, the newest first."""
    summaries = []
    for row in connection.execute(f"SELECT {_COLUMNS} FROM runs ORDER BY id DESC").fetchall():
        run, name, task, backend, sequence, evaluations, started, last, ended, ended_with = row
        best = connection.execute(_BEST, (run, ended_with)).fetchone()
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
                confirmed=bool(best and best[4]),
                started=started,
                last=last,
                ended=ended,
            )
        )
    return summaries
