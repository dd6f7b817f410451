"""Which workload of a program is to become faster: a gain where little is left is hard to come by.

The furthest from its limit comes first. After some attempts from a program, whatever came of them,
the next workload has its turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_smith.records import Evaluation, Focus
from kernel_smith.search.front import workload_scores

if TYPE_CHECKING:
    from kernel_smith.runs.state import RunState

_ATTEMPTS = 3


def focus_of(state: RunState, parent: str) -> Focus | None:
    """None for a task of one workload, and where nothing was timed."""
    if len(state.task.workloads) < 2:
        return None
    ordered = _furthest_first(state.evaluated[parent].evaluation) or _slowest_first(state, parent)
    if not ordered:
        return None
    return ordered[state.children[parent] // _ATTEMPTS % len(ordered)]


def _furthest_first(evaluation: Evaluation) -> list[Focus]:
    """By the device's limits, where these are known; what is bound by its launch comes last."""
    ordered = sorted(evaluation.rooflines, key=lambda each: (each.bound == "launch", each.share))
    return [
        Focus(workload=each.workload, why=f"it is at {each.share:.0%} of the device's limit")
        for each in ordered
    ]


def _slowest_first(state: RunState, parent: str) -> list[Focus]:
    """By the speed over the reference's: the reference is about as good on all of them."""
    scores = workload_scores(state.evaluated[parent])
    return [
        Focus(workload=name, why=f"it is {scores[name]:.2f}x as fast as the reference")
        for name in sorted(scores, key=lambda name: scores[name])
    ]
