"""A softmax policy over weighted numbers: SFT towards what certainly gained, then RL.

Every option's reward is in the table, so RL needs no samples: the expected reward of the policy is
a sum, and so is its gradient. An entropy bonus keeps the policy from betting on one option. How
long to train is decided by cross-validation over families.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy

from kernel_smith.proposers.chooser.policy import ANY, Policy, crossed
from kernel_smith.training.choices.examples import Example
from kernel_smith.training.choices.families import by_other_families, kinds_in, splits, told_kinds
from kernel_smith.training.choices.matrix import Floats, Matrix, matrix_of, names_in


@dataclass(frozen=True)
class Settings:
    """Rates differ because a likelihood is larger than a gain.

    `wide`: also learn from what the edit makes of the text, from how many loops are around it, and
    from what holds of places for all kinds of edits together.
    """

    steps: int = 300
    sft_rate: float = 0.02
    rl_rate: float = 2.0
    momentum: float = 0.9
    entropy: float = 0.01
    wide: bool = False
    temperatures: tuple[float, ...] = (1.0, 0.5, 0.25, 0.1)
    folds: int = 4
    seed: int = 0


Objective = Callable[[Matrix, Floats, Settings], tuple[float, Floats]]
"""What is to grow, and its gradient by the scores of the options."""


def towards_gains(matrix: Matrix, scores: Floats, settings: Settings) -> tuple[float, Floats]:
    """SFT: the log-likelihood of what certainly gained, by how much, where something did."""
    total = matrix.per_state(matrix.rewards)
    gained = total > 0
    wanted = matrix.rewards / numpy.where(gained, total, 1.0)[matrix.state]
    policy = matrix.softmax(scores)
    count = max(int(gained.sum()), 1)
    likelihood = float((wanted * numpy.log(policy + 1e-12)).sum()) / count
    return likelihood, (wanted - policy * gained[matrix.state]) / count


def expected_reward(matrix: Matrix, scores: Floats, settings: Settings) -> tuple[float, Floats]:
    """RL: the reward that the policy is to expect, and a bonus for its entropy."""
    policy = matrix.softmax(scores)
    worth = matrix.rewards - settings.entropy * numpy.log(policy + 1e-12)
    mean = matrix.per_state(policy * worth)
    gradient = policy * (worth - mean[matrix.state]) / len(mean)
    return float(mean.mean()), gradient


@dataclass(frozen=True)
class Fitted:
    """The policy after SFT, the same drawn from more sharply, and the one after RL, which began
    with SFT's weights."""

    sft: Policy
    sharp: Policy
    rl: Policy


def fit_weights(examples: Sequence[Example], settings: Settings, *, about: str = "") -> Fitted:
    """Return policies that were trained as long as cross-validation wants."""
    inner = [
        (by_other_families(train), told_kinds(held, kinds_in(train)))
        for train, held in splits(examples, settings.folds, settings.seed)
    ]
    fittings = [_Fitting(train, settings) for train, _ in inner]
    others = [
        fitting.centred(matrix_of(held, crossed, fitting.matrix.names))
        for fitting, (_, held) in zip(fittings, inner, strict=True)
    ]
    last = _Fitting(by_other_families(examples), settings)
    kinds = kinds_in(examples)
    last.climb(towards_gains, settings.sft_rate, _climb(fittings, others, towards_gains))
    sft = Policy(kind="weights", about=about, kinds=kinds, weights=last.by_name())
    sharp = sft.model_copy(update={"temperature": _temperature(fittings, others)})
    last.climb(expected_reward, settings.rl_rate, _climb(fittings, others, expected_reward))
    rl = Policy(kind="weights", about=about, kinds=kinds, weights=last.by_name())
    return Fitted(sft, sharp, rl)


def _temperature(fittings: Sequence[_Fitting], others: Sequence[Matrix]) -> float:
    """The one at which others may expect most."""
    pairs = [(other, fit.scores(other)) for fit, other in zip(fittings, others, strict=True)]

    def reward(degrees: float) -> float:
        policies = ((other, other.softmax(scores / degrees)) for other, scores in pairs)
        return sum(float((policy * other.rewards).sum()) for other, policy in policies)

    return max(fittings[0].settings.temperatures, key=reward)


def _climb(fittings: Sequence[_Fitting], others: Sequence[Matrix], objective: Objective) -> int:
    """Have all climb as long as others gain by it, and return for how many steps that was."""
    settings = fittings[0].settings
    rate = settings.sft_rate if objective is towards_gains else settings.rl_rate
    reached = numpy.zeros(settings.steps + 1)
    for fitting, other in zip(fittings, others, strict=True):
        trial = fitting.copy()
        states = other.state[-1] + 1
        for step in range(settings.steps + 1):
            reached[step] += states * objective(other, trial.scores(other), settings)[0]
            trial.climb(objective, rate, 1)
    steps = int(reached.argmax())
    for fitting in fittings:
        fitting.climb(objective, rate, steps)
    return steps


def _is_wide(name: str) -> bool:
    edit, _, place = name.partition(" ")
    return edit == ANY or place.startswith(("more:", "depth"))


class _Fitting:
    """Weights on their way up, by the gradient with momentum.

    What many options share moves first, so stopping early keeps what few of them show small.
    Numbers of a place are counted from their mean for the kind of edit, or all of them together
    would say which kind it is.
    """

    def __init__(self, examples: Sequence[Example], settings: Settings) -> None:
        names = names_in(examples, crossed)
        names = names if settings.wide else [each for each in names if not _is_wide(each)]
        matrix = matrix_of(examples, crossed, names)
        self.settings = settings
        columns = {name: index for index, name in enumerate(matrix.names)}
        self._pairs = [
            (index, columns[edit])
            for name, index in columns.items()
            if (edit := name.partition(" ")[0]) != name and edit != ANY
        ]
        sums = matrix.values.sum(axis=0)
        self._means = [sums[index] / sums[edit] for index, edit in self._pairs]
        self.matrix = self.centred(matrix)
        self._weights = numpy.zeros(len(matrix.names))
        self._speed = numpy.zeros_like(self._weights)

    def centred(self, matrix: Matrix) -> Matrix:
        """Return options with the numbers of their places counted from the means known here."""
        values = matrix.values.copy()
        for (index, edit), mean in zip(self._pairs, self._means, strict=True):
            values[:, index] -= mean * values[:, edit]
        return replace(matrix, values=values)

    def copy(self) -> _Fitting:
        """Return one that goes on from here by itself."""
        return copy.copy(self)  # arrays are replaced, never changed

    def scores(self, matrix: Matrix) -> Floats:
        """Return those of options, centred here."""
        found: Floats = matrix.values @ self._weights
        return found

    def climb(self, objective: Objective, rate: float, steps: int) -> None:
        """Take so many steps."""
        for _ in range(steps):
            _, by_score = objective(self.matrix, self.scores(self.matrix), self.settings)
            gradient = self.matrix.values.T @ by_score
            self._speed = self.settings.momentum * self._speed + rate * gradient
            self._weights = self._weights + self._speed

    def by_name(self) -> dict[str, float]:
        """Return what is not zero, for numbers as they come."""
        plain = self._weights.copy()
        for (index, edit), mean in zip(self._pairs, self._means, strict=True):
            plain[edit] -= mean * self._weights[index]
        found = zip(self.matrix.names, plain.round(5).tolist(), strict=True)
        return {name: value for name, value in found if value}
