"""Runs over a table: proposals whose evaluations are known already, so that thousands cost nothing.

A run begins at a task's first program and proposes a change of the best program that has one left.
What certainly gained is built upon, as far as the table goes on from there.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from kernel_smith.proposers.chooser.policy import Policy
from kernel_smith.proposers.mutator.priors import Expected, success
from kernel_smith.training.choices.examples import Choice, Example

_LEAST = 1e-9  # so that also what is never likely can be drawn, where nothing else is left


class Arm(Protocol):
    """One way to choose. A new one is made for every run."""

    def choose(self, example: Example, left: Sequence[int], rng: random.Random) -> int:
        """Return one of the options that are left at a program, by their numbers."""

    def learn(self, choice: Choice) -> None:
        """Hear what came of it."""


class Uniform:
    """Any option."""

    def choose(self, example: Example, left: Sequence[int], rng: random.Random) -> int:
        return rng.choice(left)

    def learn(self, choice: Choice) -> None:
        return


class ByKind:
    """A kind of edit by what it gained elsewhere, and, if it `learns`, in this run; any site."""

    def __init__(self, expected: Mapping[str, Expected], *, learns: bool) -> None:
        self._records = {name: [*each] for name, each in expected.items()}
        self._learns = learns

    def choose(self, example: Example, left: Sequence[int], rng: random.Random) -> int:
        kinds = sorted({example.choices[index].edit for index in left})
        drawn = {kind: rng.betavariate(*self._record(kind)) for kind in kinds}
        best = max(kinds, key=lambda kind: drawn[kind])
        return rng.choice([index for index in left if example.choices[index].edit == best])

    def learn(self, choice: Choice) -> None:
        if self._learns:
            paid = success(math.exp(choice.reward))
            record = self._record(choice.edit)
            record[0] += paid
            record[1] += 1 - paid

    def _record(self, kind: str) -> list[float]:
        return self._records.setdefault(kind, [*Expected()])


class ByPolicy:
    """What a fitted policy draws. `odds` remembers what it says of a program on a machine."""

    def __init__(self, policy: Policy, odds: dict[tuple[str, str], list[float]]) -> None:
        self._policy = policy
        self._odds = odds

    def choose(self, example: Example, left: Sequence[int], rng: random.Random) -> int:
        key = example.machine, example.program
        if key not in self._odds:
            numbers = [choice.features for choice in example.choices]
            self._odds[key] = self._policy.probabilities(numbers)
        odds = self._odds[key]
        return rng.choices(left, [odds[index] + _LEAST for index in left])[0]

    def learn(self, choice: Choice) -> None:
        return


class ByOdds:
    """What was said beforehand of each program on a machine, such as by a language model: how
    likely each child is to be chosen. Of a program that nothing was said of, any option."""

    def __init__(self, odds: Mapping[tuple[str, str], Mapping[str, float]]) -> None:
        self._odds = odds

    def choose(self, example: Example, left: Sequence[int], rng: random.Random) -> int:
        said = self._odds.get((example.machine, example.program), {})
        weights = [said.get(example.choices[index].child, 0.0) + _LEAST for index in left]
        return rng.choices(left, weights)[0]

    def learn(self, choice: Choice) -> None:
        return


class Knowing:
    """The best that was judged: what nobody can surpass in one step."""

    def choose(self, example: Example, left: Sequence[int], rng: random.Random) -> int:
        return max(left, key=lambda index: example.choices[index].reward)

    def learn(self, choice: Choice) -> None:
        return


def one_choice(state: Example, make: Callable[[], Arm], seed: str, draws: int) -> float:
    """Return the mean reward of a first choice at a program."""
    rng, everything = random.Random(seed), range(len(state.choices))
    chosen = (make().choose(state, everything, rng) for _ in range(draws))
    return sum(state.choices[index].reward for index in chosen) / draws


def replay(
    states: Mapping[str, Example],
    start: str,
    make: Callable[[], Arm],
    seed: str,
    proposals: int,
) -> list[float]:
    """Return the logarithm of the best speed over the start's after each proposal.

    `states` are those of one task, by their programs.
    """
    arm, rng = make(), random.Random(seed)
    reached = {start: 0.0}
    left = {name: list(range(len(state.choices))) for name, state in states.items()}
    best, after = 0.0, []
    for _ in range(proposals):
        open_to = [name for name in reached if left.get(name)]
        if open_to:
            at = max(open_to, key=lambda name: reached[name])
            index = arm.choose(states[at], left[at], rng)
            left[at].remove(index)
            choice = states[at].choices[index]
            arm.learn(choice)
            if choice.drift is not None:
                speed = reached[at] + choice.drift
                reached[choice.child] = max(reached.get(choice.child, speed), speed)
                best = max(best, speed)
        after.append(best)
    return after
