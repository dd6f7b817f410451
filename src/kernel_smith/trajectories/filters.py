"""Which steps are worth learning from: named rules that are combined at will.

    counts = Counter()
    kept = sift(read_steps(stores), chosen(PRESETS["sft"], FilterSettings()), counts)

First steps (from the reference to a kernel) and later ones (from a kernel to the next) are kept by
different rules: a first step has to be correct, a later one also certainly faster than its parent,
by a measuring that did not choose it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kernel_smith.errors import BadInput
from kernel_smith.records import TrainingStep
from kernel_smith.trajectories.counting_filters import Balanced, New
from kernel_smith.trajectories.filter_base import Filter, FilterSettings
from kernel_smith.trajectories.gain_filters import (
    Faster,
    FasterEverywhere,
    MeasuredAgain,
    NotAnArtefact,
    Tail,
)
from kernel_smith.trajectories.verdict_filters import (
    BestStep,
    Correct,
    HeldOut,
    HonestLineage,
    NotSeenBetter,
    Timed,
)

__all__ = [
    "DECIDED_BY_GAINS",
    "FILTERS",
    "KEPT",
    "PRESETS",
    "Filter",
    "FilterSettings",
    "chosen",
    "sift",
]

DECIDED_BY_GAINS = frozenset(
    each.name
    for each in (Faster, MeasuredAgain, FasterEverywhere, Tail, NotAnArtefact, New, Balanced)
)
"""Filters that come after measuring again: they ask for gains, or count what is kept."""
KEPT = "kept"
"""What `sift` counts the steps under that no filter refused."""

FILTERS: Mapping[str, type[Filter]] = {
    each.name: each
    for each in (
        HeldOut,
        Correct,
        Timed,
        HonestLineage,
        BestStep,
        Faster,
        MeasuredAgain,
        FasterEverywhere,
        Tail,
        NotAnArtefact,
        NotSeenBetter,
        New,
        Balanced,
    )
}

PRESETS: Mapping[str, tuple[str, ...]] = {
    "sft": (
        "held-out",
        "correct",
        "timed",
        "honest-lineage",
        "faster",
        "measured-again",
        "faster-everywhere",
        "tail",
        "not-an-artefact",
        "new",
        "balanced",
    ),
    "rl": (
        "held-out",
        "correct",
        "timed",
        "honest-lineage",
        "best-step",
        "faster",
        "measured-again",
        "faster-everywhere",
        "tail",
        "not-an-artefact",
        "not-seen-better",
        "new",
        "balanced",
    ),
}


def chosen(names: Sequence[str], settings: FilterSettings) -> list[Filter]:
    """New filters by name, each once. Those that count what they keep come last."""
    for name in names:
        if name not in FILTERS:
            raise BadInput(
                f"no filter is called {name!r}, expected one of {', '.join(FILTERS)}",
                hint="leave it out, or choose one of these",
            )
    return [make(settings) for name, make in FILTERS.items() if name in names]


def sift(
    steps: Iterable[TrainingStep], filters: Sequence[Filter], counts: Counter[str]
) -> Iterator[TrainingStep]:
    """The steps that no filter refuses. A refusal is counted for the filter that comes first."""
    for step in steps:
        refusing = next((each.name for each in filters if each.refuse(step) is not None), None)
        counts[refusing or KEPT] += 1
        if refusing is None:
            yield step
