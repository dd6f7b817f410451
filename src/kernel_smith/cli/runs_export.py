"""A run as a file for other programs: JSON Lines, a table, or a trace over time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from kernel_smith.cli.output import complete_file
from kernel_smith.errors import BadInput
from kernel_smith.records import (
    Event,
    Remeasured,
    RunStarted,
    StepDropped,
    StepEvaluated,
    StepProposed,
)

_ENDINGS = (".jsonl", ".parquet", ".csv", ".trace.json")


def write_run(events: Iterable[Event], path: Path) -> int:
    """Write a run in the format that the file's name asks for; return the number of its steps."""
    if not path.name.endswith(_ENDINGS):
        raise BadInput(
            f"{path}: the ending says no format, expected one of {', '.join(_ENDINGS)}",
            hint=f"-o {path.stem or 'run'}.jsonl, for all there is to know",
        )
    with complete_file(path) as part:
        if path.suffix == ".parquet":
            from kernel_smith.exports.steps import write_parquet

            return write_parquet(events, part)
        if path.suffix == ".csv":
            from kernel_smith.exports.steps import write_csv

            return write_csv(events, part)
        if path.suffix == ".json":
            from kernel_smith.exports.trace import make_trace

            kept = list(events)
            part.write_text(json.dumps(make_trace(kept)), encoding="utf-8")
            return sum(isinstance(event, StepEvaluated | StepDropped) for event in kept)
        with part.open("w", encoding="utf-8") as file:
            return write_lines(events, file.write)


def write_lines(events: Iterable[Event], write: Callable[[str], Any]) -> int:
    """Write the run, its steps in the order they ended, and `done`; the number of its steps.

    Only steps in flight are held in memory. Those that never ended come last, with no evaluation.
    """
    waiting: dict[int, StepProposed] = {}
    steps = 0
    for event in events:
        if isinstance(event, StepProposed):
            waiting[event.step] = event
        elif isinstance(event, RunStarted):
            write(_line("run", event.model_dump(mode="json", exclude={"kind"})))
        elif isinstance(event, Remeasured):
            write(_line("remeasured", event.model_dump(mode="json", exclude={"kind"})))
        elif isinstance(event, StepEvaluated | StepDropped):
            steps += 1
            write(_line("step", _step(waiting.pop(event.step, None), event)))
    for proposed in waiting.values():
        steps += 1
        write(_line("step", _step(proposed, None)))
    write(_line("done", {"steps": steps}))
    return steps


def _step(proposed: StepProposed | None, end: StepEvaluated | StepDropped | None) -> dict[str, Any]:
    step: dict[str, Any] = {"proposal": None, "evaluation": None, "dropped": None}
    if proposed is not None:
        step |= proposed.model_dump(mode="json", exclude={"kind", "at"})
        step["candidate"] = proposed.proposal.candidate.content_hash
        step["proposed_at"] = proposed.at.isoformat()
    if isinstance(end, StepEvaluated):
        step |= end.model_dump(mode="json", exclude={"kind", "at"})
    elif end is not None:
        about = {"proposer", "parent", "why", "conversation"}
        step |= {"step": end.step, "dropped": end.model_dump(mode="json", include=about)}
    if end is not None:
        step["ended_at"] = end.at.isoformat()
    return step


def _line(event: str, content: dict[str, Any]) -> str:
    text = json.dumps({"event": event} | content, separators=(",", ":"), ensure_ascii=False)
    return f"{text}\n"
