"""The best programs of the nearest other tasks: what worked there may work here.

They come from stores, whose runs have confirmed them, and from folders of results, in which a
program lies beside `evaluation.json`, the judge's record of it. Tasks are near if their references
use the same operations. Only programs for the same backend that were shown to be faster than
PyTorch are worth showing.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kernel_smith.errors import BadInput
from kernel_smith.programs.operations import likeness, operations
from kernel_smith.records import (
    Candidate,
    Evaluation,
    Interval,
    RunStarted,
    Task,
    Winner,
    shown_faster,
)
from kernel_smith.store import Store
from kernel_smith.tasks import find_task

_SHOWN = 2
_LOOKED_AT = 200  # the newest runs
_NEAR = 0.25
_LONGEST = 12_000  # characters: a longer one would crowd out the rest
_RECORD = "evaluation.json"


@dataclass(frozen=True)
class Find:
    """A program that won, and what it was written for."""

    task: Task
    speedup: Interval
    source: str


def nearest_winners(task: Task, finds: Iterable[Find]) -> list[Winner]:
    """The nearest first; of each task the fastest alone."""
    mine = operations(task.source)
    best: dict[str, tuple[float, Find]] = {}
    for find in finds:
        other = find.task
        if other.content_hash == task.content_hash or other.name == task.name:
            continue
        near = likeness(mine, operations(other.source))
        known = best.get(other.name)
        if near >= _NEAR and (known is None or find.speedup.low > known[1].speedup.low):
            best[other.name] = near, find
    nearest = heapq.nlargest(_SHOWN, best.values(), key=lambda found: found[0])
    return [
        Winner(task=find.task.name, speedup=find.speedup.value, source=find.source)
        for _, find in nearest
        if len(find.source) <= _LONGEST
    ]


def finds_of_store(store: Store, backend: str) -> Iterator[Find]:
    """Yield the winners of its newest runs."""
    for run in store.runs()[:_LOOKED_AT]:
        best, name = run.best, run.best_candidate
        if run.backend != backend or not run.confirmed or best is None or name is None:
            continue
        _, first = next(store.events(run.id))
        assert isinstance(first, RunStarted)
        yield Find(first.task, best, store.candidate(name).source)


def finds_at(place: Path, backend: str) -> Iterator[Find]:
    """Yield the winners of a store's file, or of all records in a folder."""
    if place.is_dir():
        yield from _finds_in(place, backend)
        return
    with Store.open(place) as store:
        yield from finds_of_store(store, backend)


def _finds_in(folder: Path, backend: str) -> Iterator[Find]:
    """Yield those that were written for built-in tasks: of others no reference is known."""
    for path in sorted(folder.rglob(_RECORD)):
        try:
            evaluation = Evaluation.model_validate_json(path.read_bytes())
            task = find_task(evaluation.task)
            program = _program_beside(path, evaluation)
        except (ValueError, OSError, BadInput):
            continue  # somebody else's file
        timing = evaluation.timing
        wanted = evaluation.backend == backend and shown_faster(evaluation)
        if wanted and timing is not None and program is not None:
            yield Find(task, timing.speedup, program)


def _program_beside(record: Path, evaluation: Evaluation) -> str | None:
    for path in sorted(record.parent.glob("*.py")):
        source = path.read_text(encoding="utf-8", errors="replace")  # which changes its hash
        known = Candidate(backend=evaluation.backend, source=source).content_hash
        if known == evaluation.candidate_hash:
            return source
    return None
