"""From a fold over a run's events to the data of its page."""

from __future__ import annotations

import math
import shlex
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Literal, TypeVar

from kernel_smith.records import Timing
from kernel_smith.store import StepFacts
from kernel_smith.store.facts import GATES
from kernel_smith.viewer.fold import RunFold
from kernel_smith.viewer.records import (
    Dropped,
    FeatureAxis,
    Names,
    RunCost,
    RunPage,
    StepColumns,
)

State = Literal["running", "ended", "interrupted"]
Name = TypeVar("Name", bound=Hashable)

_DIGITS = 5  # of every figure: more than anybody measures


def run_page(
    fold: RunFold,
    state: State,
    best_timing: Timing | None,
    task_words: list[str],
    store: Path | None,
) -> RunPage:
    """`best_timing`: the last of the best step.
    `task_words`: how a command names the task, with the options that make it this task.
    `store`: the file as the user named it, None for the usual one.
    """
    history = fold.history
    positions = {step: position for position, step in enumerate(history.steps)}
    best = history.best
    names, steps = _columns(fold, positions)
    return RunPage(
        id=history.run,
        sequence=fold.sequence,
        task=history.task.name,
        description=history.task.description,
        precision=history.task.precision.value,
        backend=history.config.backend,
        method=history.config.method,
        state=state,
        made_up=fold.made_up,
        started=history.started,
        seconds=fold.elapsed(fold.at) if fold.at is not None else 0.0,
        ended=history.ended,
        unconfirmed=history.unconfirmed,
        resumed=history.resumed,
        budget=history.config.budget,
        lanes=history.config.evaluations_in_flight,
        machine=fold.machine,
        funnel={gate: history.funnel[gate] for gate in GATES},
        dropped=tuple(
            Dropped(proposer=proposer, why=why, count=count)
            for (proposer, why), count in fold.dropped.most_common()
        ),
        usage=history.usage,
        model_usage=fold.model_usage,
        names=names,
        axes=tuple(
            FeatureAxis(name=axis.name, description=axis.description, bins=axis.bins)
            for axis in fold.axes
        ),
        steps=steps,
        best=positions[best.step] if best is not None else None,
        shown=best.shown if best is not None else (),
        confirmed=best is not None and best.confirmed,
        workloads=best_timing.workloads if best_timing is not None else (),
        held=tuple(
            positions[facts.step] for facts in history.steps.values() if history.was_best(facts)
        ),
        curve=tuple(fold.curve),
        gains=tuple(fold.gains),
        spans=tuple(fold.spans),
        rooflines=tuple(fold.rooflines(positions)),
        ceilings=fold.ceilings,
        commands=_commands(fold, task_words, store),
    )


def run_cost(fold: RunFold) -> RunCost:
    return RunCost(device_seconds=fold.history.device_seconds, usage=fold.history.usage)


def _columns(fold: RunFold, positions: dict[int, int]) -> tuple[Names, StepColumns]:
    facts = list(fold.history.steps.values())
    traces = [fold.traces[each.step] for each in facts]
    proposers, proposer = _numbered(each.proposer for each in facts)
    models, model = _numbered(each.model for each in traces)
    stages, stage = _numbered(each.stage and each.stage.value for each in facts)
    reasons, reason = _numbered(each.reason and each.reason.value for each in facts)
    cells, cell = _numbered(each.cell for each in traces)
    speedups = [each.speedup for each in facts]
    calls = [each.call_seconds for each in traces]
    names = Names(proposers=proposers, models=models, stages=stages, reasons=reasons, cells=cells)
    columns = StepColumns(
        step=[each.step for each in facts],
        proposed=[fold.elapsed(each.at) for each in facts],
        ended=[each.ended for each in traces],
        seconds=[_short(each.seconds) for each in traces],
        proposer=[number or 0 for number in proposer],
        model=model,
        parent=[_parent(fold, each, positions) for each in facts],
        stage=stage,
        reason=reason,
        value=[_short(each.value if each else None) for each in speedups],
        low=[_short(each.low if each else None) for each in speedups],
        high=[_short(each.high if each else None) for each in speedups],
        p50=[_short(each.p50 if each else None) for each in calls],
        p99=[_short(each.p99 if each else None) for each in calls],
        island=[each.label.get("island") for each in facts],
        cell=cell,
        twin=[each.twin for each in traces],
        summary=[each.summary for each in facts],
        candidate=[each.candidate[:16] for each in facts],
    )
    return names, columns


def _numbered(
    values: Iterable[Name | None],
) -> tuple[tuple[Name, ...], list[int | None]]:
    """Return the different values, and for each one which of them it is."""
    known: dict[Name, int] = {}
    numbers = [None if each is None else known.setdefault(each, len(known)) for each in values]
    return tuple(known), numbers


def _parent(fold: RunFold, facts: StepFacts, positions: dict[int, int]) -> int | None:
    parent = fold.history.by_candidate.get(facts.parents[0]) if facts.parents else None
    return positions.get(parent.step) if parent is not None else None


def _short(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.{_DIGITS}g}")


def _commands(fold: RunFold, task_words: list[str], store: Path | None) -> dict[str, str]:
    """`STEP` and `FILE` stand for what a page fills in."""
    history = fold.history
    where = ["--store", str(store)] if store is not None else []
    name, *options = task_words
    evaluate = ["evaluate", name, "FILE", *options, "--backend", history.config.backend, "--fresh"]
    for baseline in history.config.confirmation.baselines:
        evaluate += ["--baseline", baseline]
    return {
        "source": _command("runs", "best", history.run, "--step", "STEP", "-o", "FILE", *where),
        "evaluate": _command(*evaluate),
        "resume": _command("resume", history.run, *where),
        "best": _command("runs", "best", history.run, *where),
    }


def _command(*words: str) -> str:
    return shlex.join(["kernel-smith", *words])
