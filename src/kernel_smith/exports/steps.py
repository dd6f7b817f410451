"""A run as a table: one row per step, with what is known of it in the end."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kernel_smith.records import (
    Conversation,
    Evaluation,
    Event,
    Remeasured,
    RunStarted,
    Stage,
    StepDropped,
    StepEvaluated,
    StepProposed,
)
from kernel_smith.trajectories.formats import Column
from kernel_smith.trajectories.writing import ParquetRows

COLUMNS: dict[str, Column] = {
    "run": "text",
    "task": "text",
    "family": "text",
    "backend": "text",
    "method": "text",
    "step": "integer",
    "proposer": "text",
    "parent_step": "integer",
    "candidate": "text",
    "summary": "text",
    "label": "text",
    "stage": "text",
    "reason": "text",
    "speedup": "number",
    "speedup_low": "number",
    "speedup_high": "number",
    "first_speedup": "number",
    "measured_again": "integer",
    "seconds": "number",
    "proposed_at": "text",
    "ended_at": "text",
    "model": "text",
    "prompt_tokens": "integer",
    "completion_tokens": "integer",
    "dollars": "number",
    "source": "text",
}
"""`speedup` is over the first baseline, by the last measuring; `first_speedup` by the first."""

Row = dict[str, Any]


def step_rows(events: Iterable[Event]) -> list[Row]:
    """Return the steps of a run by their numbers; those that were dropped have that as stage."""
    run: Row = {}
    rows: dict[int, Row] = {}
    by_candidate: dict[str, Row] = {}
    for event in events:
        match event:
            case RunStarted():
                run = _run(event)
            case StepProposed():
                row = rows[event.step] = _blank(run) | _proposed(event, by_candidate)
                by_candidate.setdefault(row["candidate"], row)
            case StepEvaluated():
                row = rows[event.step]
                _measure(row, event.evaluation)
                row |= {"first_speedup": row["speedup"], "seconds": event.seconds}
                row["ended_at"] = event.at.isoformat()
            case Remeasured():
                row = by_candidate[event.candidate]
                row["measured_again"] += 1
                if event.evaluation.stage is not Stage.UNSTABLE:  # which says nothing
                    _measure(row, event.evaluation)
            case StepDropped():
                rows[event.step] = _blank(run) | _dropped(event, by_candidate)
    return [rows[number] for number in sorted(rows)]


def write_parquet(events: Iterable[Event], path: Path) -> int:
    """Write the table to a file; return the number of its rows."""
    rows = step_rows(events)
    writer = ParquetRows(path, COLUMNS)
    try:
        for row in rows:
            writer.write(row)
    finally:
        writer.close()
    return len(rows)


def write_csv(events: Iterable[Event], path: Path) -> int:
    """Write the table as text, with a line of names; return the number of its rows."""
    rows = step_rows(events)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    return len(rows)


def _run(event: RunStarted) -> Row:
    return {
        "run": event.run,
        "task": event.task.name,
        "family": event.task.family,
        "backend": event.config.backend,
        "method": event.config.method,
    }


def _blank(run: Row) -> Row:
    return dict.fromkeys(COLUMNS) | run | {"measured_again": 0}


def _proposed(event: StepProposed, known: dict[str, Row]) -> Row:
    proposal = event.proposal
    parent = known.get(proposal.parents[0]) if proposal.parents else None
    return {
        "step": event.step,
        "proposer": proposal.proposer,
        "parent_step": parent["step"] if parent else None,
        "candidate": proposal.candidate.content_hash,
        "summary": proposal.summary,
        "label": json.dumps(event.label),
        "stage": "in-flight",
        "proposed_at": event.at.isoformat(),
        "source": proposal.candidate.source,
    } | _paid(proposal.conversation)


def _dropped(event: StepDropped, known: dict[str, Row]) -> Row:
    parent = known.get(event.parent) if event.parent else None
    return {
        "step": event.step,
        "proposer": event.proposer,
        "parent_step": parent["step"] if parent else None,
        "summary": event.why,
        "stage": "dropped",
        "ended_at": event.at.isoformat(),
    } | _paid(event.conversation)


def _paid(conversation: Conversation | None) -> Row:
    if conversation is None:
        return {}
    usage = conversation.usage
    return {
        "model": conversation.model,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "dollars": usage.dollars,
    }


def _measure(row: Row, evaluation: Evaluation) -> None:
    speedup = evaluation.timing.speedup if evaluation.timing is not None else None
    row |= {
        "stage": evaluation.stage.value,
        "reason": evaluation.reason.value if evaluation.reason else None,
        "speedup": speedup.value if speedup else None,
        "speedup_low": speedup.low if speedup else None,
        "speedup_high": speedup.high if speedup else None,
    }
