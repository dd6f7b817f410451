"""A run over time as a Chrome trace, which Perfetto and chrome://tracing show.

Three rows of lanes: evaluations, requests to models, and what the run did as a whole. Events say
when something ended and how long it took; what overlaps is put on lanes of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kernel_smith.records import (
    ConfirmationBegun,
    Conversation,
    Counted,
    Event,
    MeasuredInVain,
    Noted,
    Remeasured,
    RunEnded,
    RunResumed,
    RunStarted,
    StepDropped,
    StepEvaluated,
    StepProposed,
)
from kernel_smith.records.prose import headline
from kernel_smith.store import Ranking

_RUN, _JUDGE, _MODEL = 1, 2, 3
_ROWS = {_RUN: "run", _JUDGE: "evaluations", _MODEL: "model requests"}

Entry = dict[str, Any]


@dataclass
class _Span:
    row: int
    name: str
    begin: float
    end: float
    notes: Entry


@dataclass
class _Trace:
    """Collects spans and moments, in seconds since the run was started."""

    start: datetime
    spans: list[_Span] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)

    def at(self, moment: datetime) -> float:
        return max(0.0, (moment - self.start).total_seconds())

    def span(self, row: int, name: str, end: datetime, seconds: float, notes: Entry) -> None:
        last = self.at(end)
        self.spans.append(_Span(row, name, max(0.0, last - seconds), last, notes))

    def moment(self, name: str, at: datetime) -> None:
        entry = {"ph": "i", "s": "p", "pid": _RUN, "tid": 0, "name": name}
        self.entries.append(entry | {"ts": _micro(self.at(at))})

    def count(self, name: str, value: float, at: datetime) -> None:
        entry = {"ph": "C", "pid": _RUN, "name": name, "args": {name: value}}
        self.entries.append(entry | {"ts": _micro(self.at(at))})

    def asked(self, conversation: Conversation | None, at: datetime, outcome: str) -> None:
        if conversation is not None:
            usage = conversation.usage
            notes = usage.model_dump() | {"outcome": outcome}
            self.span(_MODEL, conversation.model, at, usage.seconds, notes)


def make_trace(events: Iterable[Event]) -> dict[str, Any]:
    """Return the trace of a run, as the JSON object that viewers open."""
    trace: _Trace | None = None
    confirming: datetime | None = None
    ranking, best = Ranking(), 0.0
    for event in events:
        if isinstance(event, RunStarted):
            trace = _Trace(event.at)
            trace.moment(f"run {event.run}", event.at)
        assert trace is not None, "a run begins with its start"
        _add(trace, event, confirming)
        if isinstance(event, ConfirmationBegun):
            confirming = event.at
        ranking.hear(event)
        leads = ranking.best is not None and ranking.best not in ranking.challenges
        if leads and ranking.score(ranking.best) != best:
            best = ranking.score(ranking.best)
            trace.count("certain speedup of the best", best, event.at)
    spans = [] if trace is None else _laid_out(trace.spans)
    names = [
        {"ph": "M", "name": "process_name", "pid": row, "args": {"name": name}}
        for row, name in _ROWS.items()
    ]
    return {"traceEvents": [*names, *spans, *(trace.entries if trace else [])]}


def _add(trace: _Trace, event: Event, confirming: datetime | None) -> None:
    match event:
        case StepProposed():
            trace.numbers.setdefault(event.proposal.candidate.content_hash, event.step)
            trace.asked(event.proposal.conversation, event.at, f"step {event.step}")
        case StepDropped():
            trace.asked(event.conversation, event.at, f"dropped: {event.why}")
        case Noted():
            trace.asked(event.note.conversation, event.at, "noted")
        case StepEvaluated():
            notes = {"verdict": headline(event.evaluation)}
            trace.span(_JUDGE, f"step {event.step}", event.at, event.seconds, notes)
        case Remeasured():
            # At full length the judge measures from when that was begun.
            whole = (event.at - confirming).total_seconds() if confirming else event.seconds
            seconds = whole if event.confirming else event.seconds
            kind = "at full length" if event.confirming else "again"
            notes = {"verdict": headline(event.evaluation)}
            name = f"{_step(trace, event.candidate)} {kind}"
            trace.span(_JUDGE, name, event.at, seconds, notes)
        case MeasuredInVain():
            name = f"{_step(trace, event.candidate)} in vain"
            trace.span(_JUDGE, name, event.at, event.seconds, {})
        case Counted():
            name = f"{_step(trace, event.candidate)} under a profiler"
            trace.span(_JUDGE, name, event.at, event.seconds, {})
        case RunResumed():
            trace.moment("resumed", event.at)
        case RunEnded():
            trace.moment(f"ended: {event.why}", event.at)


def _step(trace: _Trace, candidate: str) -> str:
    return f"step {trace.numbers[candidate]}" if candidate in trace.numbers else candidate[:8]


def _laid_out(spans: list[_Span]) -> list[Entry]:
    """Put each span on the first lane of its row that is free."""
    free: dict[int, list[float]] = {}
    entries = []
    for span in sorted(spans, key=lambda each: each.begin):
        lanes = free.setdefault(span.row, [])
        lane = next((n for n, end in enumerate(lanes) if end <= span.begin), len(lanes))
        if lane == len(lanes):
            lanes.append(span.end)
        lanes[lane] = span.end
        entries.append(
            {
                "ph": "X",
                "name": span.name,
                "pid": span.row,
                "tid": lane,
                "ts": _micro(span.begin),
                "dur": _micro(span.end) - _micro(span.begin),
                "args": span.notes,
            }
        )
    return entries


def _micro(seconds: float) -> int:
    return round(seconds * 1e6)
