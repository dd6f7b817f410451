"""Judged options out of stores: single edits that recorded runs have tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from kernel_smith.records import TrainingStep
from kernel_smith.training.choices.rows import Judged, judged_row, parent_row
from kernel_smith.training.choices.table import State
from kernel_smith.trajectories.steps import read_steps

_CHAIN = "; then "
_EDITORS = ("mutator", "chooser")


def recorded_states(
    stores: Sequence[Path], progress: Callable[[int], None] = lambda steps: None
) -> list[State]:
    """Return the programs that edits were tried at, of all runs together.

    Where a change was measured more than once, the narrower interval counts.
    """
    states: dict[tuple[str, str], State] = {}
    for number, step in enumerate(_single_edits(stores), 1):
        progress(number)
        assert step.parent is not None
        parent = parent_row(step.task, step.parent.candidate, step.parent.evaluation)
        if parent is None:
            continue
        state = states.setdefault((parent.task, parent.program), State(parent))
        judged = judged_row(parent, step.summary, step.child.evaluation, step.gain)
        known = state.judged.get(judged.program)
        if known is None or _width(judged) < _width(known):
            state.judged[judged.program] = judged
    return list(states.values())


def _single_edits(stores: Sequence[Path]) -> Iterator[TrainingStep]:
    for step in read_steps(stores):
        if step.parent is not None and step.proposer in _EDITORS and _CHAIN not in step.summary:
            yield step


def _width(judged: Judged) -> float:
    return judged.gain.half_width if judged.gain is not None else 0.0
