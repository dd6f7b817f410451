"""Filters that remember what they kept. They come last, and keep what comes first."""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Iterator

from kernel_smith.records import TrainingStep
from kernel_smith.trajectories.filter_base import Filter, FilterSettings
from kernel_smith.trajectories.sameness import step_key

# Where a new class of difficulty begins. Doubling: late steps and large gains are rare.
_DEPTHS = (1, 2, 4, 8, 16)
_GAINS = (1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 4.0)


class New(Filter):
    name = "new"
    explains = (
        "No step before it makes the same change to the same program, where wording and numbers "
        "do not count unless numbers are all that changes."
    )

    def __init__(self, settings: FilterSettings) -> None:
        super().__init__(settings)
        self._seen: set[bytes] = set()

    def refuse(self, step: TrainingStep) -> str | None:
        key = step_key(step)
        if key in self._seen:
            return "nearly the same step came before"
        self._seen.add(key)
        return None


class Balanced(Filter):
    name = "balanced"
    explains = (
        "Its task, its family, and its family at this difficulty (depth and size of gain) are not "
        "full yet."
    )

    def __init__(self, settings: FilterSettings) -> None:
        super().__init__(settings)
        self._kept: Counter[tuple[object, ...]] = Counter()

    def refuse(self, step: TrainingStep) -> str | None:
        shelves = list(self._shelves(step))
        for what, shelf, limit in shelves:
            if limit is not None and self._kept[shelf] >= limit:
                return f"there are {limit} steps of this {what}"
        self._kept.update(shelf for _, shelf, _ in shelves)
        return None

    def _shelves(self, step: TrainingStep) -> Iterator[tuple[str, tuple[object, ...], int | None]]:
        settings, task = self._settings, step.task
        yield "task", ("task", task.name), settings.per_task
        yield "family", ("family", task.family), settings.per_family
        shelf = ("difficulty", task.family, *difficulty(step))
        yield "difficulty", shelf, settings.per_difficulty


def difficulty(step: TrainingStep) -> tuple[int, int]:
    """How late in its lineage a step comes, and how much it certainly gains, in classes."""
    gain = step.gain.overall.certain if step.gain is not None else 1.0
    return bisect(_DEPTHS, step.depth), bisect(_GAINS, gain)
