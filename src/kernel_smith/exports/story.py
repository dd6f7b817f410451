"""A run as experiment trackers want it: settings, figures by step, and the winner."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kernel_smith.exports.steps import Row, step_rows
from kernel_smith.records import Event, RunStarted
from kernel_smith.runs.state import RunState

PROJECT = "kernel-smith"


@dataclass(frozen=True)
class Story:
    """What a tracker is told."""

    run: str
    settings: dict[str, Any]
    steps: list[tuple[int, dict[str, float]]]
    """The number of a step, and its figures."""
    outcome: dict[str, float]
    kernel: str | None
    """The source of the winner."""


def story_of(events: Iterable[Event]) -> Story:
    kept = list(events)
    first = kept[0]
    assert isinstance(first, RunStarted), "a run begins with its start"
    state = RunState.begin(first)
    for event in kept[1:]:
        state.apply(event)
    rows = step_rows(kept)
    usage = state.usage
    outcome = {
        "best_speedup_low": state.best.score if state.best is not None else 0.0,
        "confirmed": float(state.is_confirmed),
        "evaluations": float(state.funnel["evaluated"]),
        "device_seconds": state.device_seconds,
        "tokens": float(usage.prompt_tokens + usage.completion_tokens),
        "dollars": usage.dollars,
    }
    return Story(
        run=state.run,
        settings=_settings(first),
        steps=list(_figures(rows)),
        outcome=outcome,
        kernel=state.best.candidate.source if state.best is not None else None,
    )


def _settings(first: RunStarted) -> dict[str, Any]:
    config = first.config
    models = config.settings.get("model", {}).get("models", ())
    budget = {f"budget.{name}": value for name, value in config.budget if value is not None}
    return {
        "task": first.task.name,
        "family": first.task.family,
        "precision": first.task.precision.value,
        "backend": config.backend,
        "method": config.method,
        "proposers": ", ".join(config.proposers),
        "models": ", ".join(model["name"] for model in models),
        "seed": config.seed,
        **budget,
    }


def _figures(rows: Iterable[Row]) -> Iterable[tuple[int, dict[str, float]]]:
    """Return what a step showed in the end, and the best that any up to it has."""
    best = 0.0
    for row in rows:
        figures = {"correct": float(row["stage"] in ("ok", "unstable"))}
        if row["speedup_low"] is not None and row["stage"] == "ok":
            best = max(best, row["speedup_low"])
            figures |= {"speedup": row["speedup"], "speedup_low": row["speedup_low"]}
        yield row["step"], figures | {"best_speedup_low": best}
