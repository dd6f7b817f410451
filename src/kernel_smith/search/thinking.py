"""Who thinks in words before it writes, and what all the others are asked for meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_smith.search.base import Ask
from kernel_smith.search.context import context_of

if TYPE_CHECKING:
    from kernel_smith.runs.state import RunState

THINKER = "model"


def ask_without_thinking(state: RunState, worker: str) -> Ask | None:
    """Ask for a first program, or for a change of the best by a worker that only writes.

    None where there is a program, and the model's turn to think about it.
    """
    if state.best is None:
        return Ask(worker=worker, context=context_of(state, None))
    if worker == THINKER:
        return None
    best = state.best.candidate.content_hash
    return Ask(worker=worker, parent=best, context=context_of(state, best))
