"""Examples as one matrix: a row for each option, and which rows belong to one state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from kernel_smith.proposers.chooser.features import Features
from kernel_smith.training.choices.examples import Example

Floats = NDArray[numpy.float64]


@dataclass(frozen=True)
class Matrix:
    """`state` counts the example of each row. States with one option teach no choosing."""

    names: list[str]
    values: Floats
    rewards: Floats
    state: NDArray[numpy.int64]

    def softmax(self, scores: Floats) -> Floats:
        """Return the policy that these scores are, over the options of each state."""
        count = int(self.state[-1]) + 1
        most = numpy.full(count, -numpy.inf)
        numpy.maximum.at(most, self.state, scores)
        powers: Floats = numpy.exp(scores - most[self.state])
        shares: Floats = powers / self.per_state(powers)[self.state]
        return shares

    def per_state(self, values: Floats) -> Floats:
        """Return sums over the options of each state."""
        return numpy.bincount(self.state, values).astype(numpy.float64)


def matrix_of(
    examples: Sequence[Example], read: Callable[[Features], Features], names: list[str]
) -> Matrix:
    """Return the matrix of some examples, of columns with these names."""
    column = {name: index for index, name in enumerate(names)}
    choices = [choice for example in examples for choice in example.choices]
    values = numpy.zeros((len(choices), len(names)))
    for row, choice in enumerate(choices):
        for name, value in read(choice.features).items():
            if name in column:
                values[row, column[name]] = value
    state = [number for number, example in enumerate(examples) for _ in example.choices]
    rewards = numpy.array([choice.reward for choice in choices])
    return Matrix(names, values, rewards, numpy.array(state))


def names_in(examples: Sequence[Example], read: Callable[[Features], Features]) -> list[str]:
    """Return the numbers that these examples have."""
    read_all = (read(choice.features) for example in examples for choice in example.choices)
    return sorted({name for features in read_all for name in features})
