"""Gradient-boosted trees: what an option is expected to gain, or how likely it is to be drawn.

Small trees, each fitted to what those before it left over: of the gain (squared error), or of the
reward that the policy can come to (RL). Thresholds are tried at a few quantiles of each number,
which loses nothing with some thousands of rows. How many trees are grown is decided by
cross-validation over families.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy
from numpy.typing import NDArray

from kernel_smith.proposers.chooser.policy import Policy, Tree
from kernel_smith.training.choices.examples import Example
from kernel_smith.training.choices.families import by_other_families, kinds_in, splits, told_kinds
from kernel_smith.training.choices.matrix import Floats, Matrix, matrix_of, names_in


@dataclass(frozen=True)
class Settings:
    """`fewest`: rows in a leaf. Smaller leaves explain less of other families."""

    trees: int = 60
    depth: int = 3
    rate: float = 0.05
    fewest: int = 30
    quantiles: int = 12
    shrink: float = 5.0
    temperatures: tuple[float, ...] = (0.002, 0.005, 0.01, 0.02, 0.05)
    entropy: float = 0.01
    folds: int = 4
    seed: int = 0


RL = Settings(trees=120, rate=2.0)

_Aim = Callable[[Matrix, Floats, Settings], Floats]
"""What the next tree is fitted to, by the scores so far."""


def _left_of_gain(matrix: Matrix, scores: Floats, settings: Settings) -> Floats:
    return matrix.rewards - scores


def _left_of_reward(matrix: Matrix, scores: Floats, settings: Settings) -> Floats:
    """The gradient of the reward to be expected, and of the bonus for entropy, of each program by
    itself, as large for many options as for few."""
    policy = matrix.softmax(scores)
    worth = matrix.rewards - settings.entropy * numpy.log(policy + 1e-12)
    mean = matrix.per_state(policy * worth)
    options = matrix.per_state(numpy.ones_like(policy))
    gradient: Floats = (options[matrix.state] * policy) * (worth - mean[matrix.state])
    return gradient


def fit_trees(examples: Sequence[Example], settings: Settings, *, about: str = "") -> Policy:
    """Return as many trees, drawn from as sharply, as cross-validation wants."""
    trials = _trials(examples, settings, _left_of_gain)
    count = int(numpy.sum([trial.errors() for trial in trials], axis=0).argmin())
    temperature = max(
        settings.temperatures,
        key=lambda degrees: sum(trial.reward(count, degrees) for trial in trials),
    )
    return _policy(examples, replace(settings, trees=count), _left_of_gain, temperature, about)


def fit_policy_trees(examples: Sequence[Example], settings: Settings, *, about: str = "") -> Policy:
    """Return trees along the gradient of the reward to be expected: as many as cross-validation
    wants."""
    trials = _trials(examples, settings, _left_of_reward)
    reached = [sum(trial.reward(n, 1.0) for trial in trials) for n in range(settings.trees + 1)]
    count = reached.index(max(reached))
    return _policy(examples, replace(settings, trees=count), _left_of_reward, 1.0, about)


def _trials(examples: Sequence[Example], settings: Settings, aim: _Aim) -> list[_Trial]:
    return [
        _Trial(by_other_families(train), told_kinds(held, kinds_in(train)), settings, aim)
        for train, held in splits(examples, settings.folds, settings.seed)
    ]


def _policy(
    examples: Sequence[Example], settings: Settings, aim: _Aim, temperature: float, about: str
) -> Policy:
    grown = _Trial(by_other_families(examples), [], settings, aim)
    return Policy(
        kind="trees",
        about=about,
        temperature=temperature,
        kinds=kinds_in(examples),
        trees=(grown.first, *(_named(tree, grown.names) for tree in grown.trees)),
    )


class _Trial:
    """Trees grown from some examples, and what they say of others."""

    def __init__(
        self,
        train: Sequence[Example],
        held: Sequence[Example],
        settings: Settings,
        aim: _Aim,
    ) -> None:
        self.names = names_in(train, dict)
        matrix, self._held = matrix_of(train, dict, self.names), matrix_of(held, dict, self.names)
        self.first = round(float(matrix.rewards.mean()), 6)
        growing, scores = _Growing(matrix, settings), numpy.full(len(matrix.rewards), self.first)
        self.trees: list[Any] = []
        self._said = [numpy.full(len(self._held.rewards), self.first)]
        for _ in range(settings.trees):
            tree, values = growing.tree(aim(matrix, scores, settings))
            scores = scores + values
            self.trees.append(tree)
            self._said.append(self._said[-1] + _values(tree, self._held))

    def errors(self) -> Floats:
        """Return the squared errors after no tree, after one, and so on."""
        return numpy.array([((self._held.rewards - said) ** 2).sum() for said in self._said])

    def reward(self, trees: int, temperature: float) -> float:
        """Return what the policy of so many trees is to expect, summed over programs."""
        policy = self._held.softmax(self._said[trees] / temperature)
        return float((policy * self._held.rewards).sum())


class _Growing:
    """Grows trees over the same rows for one target after another."""

    def __init__(self, matrix: Matrix, settings: Settings) -> None:
        self._settings = settings
        shares = numpy.linspace(0, 1, settings.quantiles + 2)[1:-1]
        self._tests: list[tuple[int, float]] = []
        above = []
        for column, values in enumerate(matrix.values.T):
            for threshold in numpy.unique(numpy.quantile(values, shares, method="lower")):
                if threshold < values.max():
                    self._tests.append((column, float(threshold)))
                    above.append(values > threshold)
        self._above = numpy.array(above, dtype=numpy.float64)

    def tree(self, target: Floats) -> tuple[Any, Floats]:
        """Return a tree by columns, and its values at the rows that it was grown from."""
        values = numpy.zeros_like(target)
        everywhere = numpy.ones(len(target), dtype=bool)
        return self._grow(target, everywhere, self._settings.depth, values), values

    def _grow(self, target: Floats, rows: NDArray[numpy.bool_], depth: int, values: Floats) -> Any:
        test = self._best_test(target, rows) if depth else None
        if test is None:
            own = target[rows]
            leaf = self._settings.rate * own.sum() / (len(own) + self._settings.shrink)
            values[rows] = leaf = round(float(leaf), 6)
            return leaf
        column, threshold = self._tests[test]
        above = self._above[test] > 0
        low = self._grow(target, rows & ~above, depth - 1, values)
        high = self._grow(target, rows & above, depth - 1, values)
        return [column, threshold, low, high]

    def _best_test(self, target: Floats, rows: NDArray[numpy.bool_]) -> int | None:
        """The one that leaves least over; None if none leaves enough rows on both sides."""
        own, shrink = target * rows, self._settings.shrink
        count, total = self._above @ rows.astype(numpy.float64), self._above @ own
        rest, left = rows.sum() - count, own.sum() - total
        explained = total**2 / (count + shrink) + left**2 / (rest + shrink)
        enough = numpy.minimum(count, rest) >= self._settings.fewest
        if not enough.any():
            return None
        return int(numpy.where(enough, explained, -numpy.inf).argmax())


def _values(tree: Any, matrix: Matrix) -> Floats:
    if not isinstance(tree, list):
        return numpy.full(len(matrix.rewards), tree)
    column, threshold, low, high = tree
    above = matrix.values[:, column] > threshold
    chosen: Floats = numpy.where(above, _values(high, matrix), _values(low, matrix))
    return chosen


def _named(tree: Any, names: Sequence[str]) -> Tree:
    if not isinstance(tree, list):
        return tree
    column, threshold, low, high = tree
    return [names[column], threshold, _named(low, names), _named(high, names)]
