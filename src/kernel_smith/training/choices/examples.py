"""States in numbers: what policies are fitted to, and what runs over a table are made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kernel_smith.proposers.chooser.features import Facts, Features, features_of
from kernel_smith.training.choices.table import State


@dataclass(frozen=True)
class Choice:
    """An option in numbers. `drift`: the certain change of speed, also where that is lost;
    None for a program that cannot be built upon."""

    edit: str
    child: str
    features: Features
    reward: float
    drift: float | None


@dataclass(frozen=True)
class Example:
    """A program with the options at it that were judged or swept. `missing`: how many were not."""

    task: str
    family: str
    machine: str
    program: str
    choices: tuple[Choice, ...]
    missing: int


def examples_of(
    states: Iterable[State], progress: Callable[[int], None] = lambda done: None
) -> list[Example]:
    """Return the states at which anything is known of options of today's mutator."""
    made = []
    for number, state in enumerate(states, 1):
        progress(number)
        example = _example(state)
        if example.choices:
            made.append(example)
    return made


def _example(state: State) -> Example:
    parent, menu = state.parent, state.menu()
    numbers = features_of(menu, Facts(parent.speedup.value, parent.machine))
    choices = []
    known = state.known
    for option, features in zip(menu.options, numbers, strict=True):
        row = known.get(option.program.content_hash)
        if row is not None:
            drift = math.log(row.gain.certain) if row.gain is not None else None
            choices.append(Choice(row.edit, row.program, features, row.reward, drift))
    missing = len(menu.options) + menu.left_out - len(choices)
    return Example(
        parent.task, parent.family, parent.machine, parent.program, tuple(choices), missing
    )
