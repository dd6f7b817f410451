"""What a proposal has gained over its parent, for whoever learns from it.

A run that is resumed teaches its workers again from what was stored, so the parent's speed travels
in the proposal's details.
"""

from __future__ import annotations

from typing import Any

from kernel_smith.records import Elite, Evaluation, Interval, Proposal
from kernel_smith.records.gains import timed_beside

PARENT_SPEEDUP = "parent_speedup"


def note_parent(parent: Elite | None) -> dict[str, Any]:
    """Return the details that a proposal's gain is computed from later."""
    speedup = speedup_of(parent.evaluation) if parent is not None else None
    return {PARENT_SPEEDUP: speedup.model_dump() if speedup is not None else None}


def gain_of(proposal: Proposal, evaluation: Evaluation) -> Interval | None:
    """Return the gain over the parent: side by side if it was timed so, else by the speedups of
    both; None where there is none."""
    parent = proposal.parents[0] if proposal.parents else None
    beside = timed_beside(evaluation, parent)
    own, before = speedup_of(evaluation), proposal.details.get(PARENT_SPEEDUP)
    if beside is not None or own is None or before is None:
        return beside
    return own.over(Interval.model_validate(before))


def speedup_of(evaluation: Evaluation) -> Interval | None:
    """Return how fast a program is that works."""
    return evaluation.timing.speedup if evaluation.ok and evaluation.timing else None
