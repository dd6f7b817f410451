"""The best programs of the nearest other tasks in a store: what worked there may work here.

Tasks are near if their references use the same operations. Only programs that were confirmed to be
faster than PyTorch, for the same backend, are worth showing.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter

from kernel_smith.records import RunStarted, Task, Winner
from kernel_smith.store import RunSummary, Store

_SHOWN = 2
_LOOKED_AT = 200  # the newest runs
_NEAR = 0.3
_LONGEST = 12_000  # characters: a longer one would crowd out the rest
_WORD = re.compile(r"[A-Za-z_]\w+")


def nearest_winners(store: Store, task: Task, backend: str) -> list[Winner]:
    """The nearest first; of each task the fastest alone."""
    mine = _words(task)
    found: dict[str, tuple[float, RunSummary]] = {}
    for run in store.runs()[:_LOOKED_AT]:
        if run.backend != backend or not run.confirmed or run.best is None:
            continue
        other = _task_of(store, run.id)
        if other.content_hash == task.content_hash or other.name == task.name:
            continue
        near = _likeness(mine, _words(other))
        known = found.get(other.name)
        best = known[1].best if known is not None else None
        if near >= _NEAR and (best is None or run.best.low > best.low):
            found[other.name] = (near, run)
    nearest = heapq.nlargest(_SHOWN, found.items(), key=lambda item: item[1][0])
    return [winner for name, (_, run) in nearest if (winner := _winner(store, name, run))]


def _winner(store: Store, name: str, run: RunSummary) -> Winner | None:
    assert run.best is not None and run.best_candidate is not None
    source = store.candidate(run.best_candidate).source
    if len(source) > _LONGEST:
        return None
    return Winner(task=name, speedup=run.best.value, source=source)


def _task_of(store: Store, run: str) -> Task:
    _, first = next(store.events(run))
    assert isinstance(first, RunStarted)
    return first.task


def _words(task: Task) -> Counter[str]:
    return Counter(_WORD.findall(task.source))


def _likeness(one: Counter[str], other: Counter[str]) -> float:
    return (one & other).total() / max(1, (one | other).total())
