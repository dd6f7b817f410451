"""Which proposer is asked next: those that paid are asked more often, and none is forgotten.

Each proposer's reward is what its recent steps certainly gained over their parents. The choice is
the largest of that, as a share of the best one's, plus uncertainty (UCB), scaled by the weight that
the user gave.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel_smith.records import (
    Declined,
    Event,
    Noted,
    Remeasured,
    StepDropped,
    StepEvaluated,
    StepProposed,
)

if TYPE_CHECKING:
    from kernel_smith.runs.state import RunState

_REMEMBERED = 40  # steps per proposer: what paid at the start may not pay later
_CURIOSITY = 1.2
_ON_TRUST = 20  # steps
_LARGEST_GAIN = math.log(2)  # one lucky step must not decide everything


@dataclass
class _Reward:
    worth: float
    step: int | None


class Bandit:
    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = {name: weight for name, weight in weights.items() if weight > 0}
        self._rewards: dict[str, deque[_Reward]] = {
            name: deque(maxlen=_REMEMBERED) for name in self._weights
        }
        self._answered = dict.fromkeys(self._weights, 0)
        self._waiting = dict.fromkeys(self._weights, 0)

    @property
    def asks(self) -> int:
        """How often anybody was asked."""
        return sum(map(self._asked, self._weights))

    def choose(self, free: Collection[str] | None = None) -> str | None:
        """Return the proposer to ask, which counts as asked; None if none of these is known."""
        names = [name for name in self._weights if free is None or name in free]
        if not names:
            return None
        shares = self._shares()
        chosen = max(names, key=lambda name: self._promise(name, shares))
        self._waiting[chosen] += 1
        return chosen

    def answered(self, name: str) -> None:
        """Count an answer, also where this bandit, rebuilt from events, did not see the ask."""
        if name in self._weights:
            self._waiting[name] = max(0, self._waiting[name] - 1)
            self._answered[name] += 1

    def _asked(self, name: str) -> int:
        return self._answered[name] + self._waiting[name]

    def hear(self, event: Event, state: RunState) -> None:
        """Learn from an event who was asked, and what came of it."""
        match event:
            case StepProposed():
                self.answered(event.proposal.proposer)
            case StepEvaluated():
                step = state.steps[event.step]
                self.reward(step.proposal.proposer, step.worth, step.number)
            case StepDropped():
                self.answered(event.proposer)
                self.reward(event.proposer, 0.0)
            case Declined():
                self.answered(event.worker)
                self.reward(event.worker, 0.0)
            case Noted():
                self.answered(event.worker)
            case Remeasured():
                for step in state.steps_about(event.candidate):
                    if step.evaluation is not None:
                        self.correct(step.proposal.proposer, step.worth, step.number)

    def reward(self, name: str, gain: float, step: int | None = None) -> None:
        """`gain` is what is certain of the child's over its parent; 0 for a child that failed."""
        if name in self._rewards:
            self._rewards[name].append(_Reward(_worth(gain), step))

    def correct(self, name: str, gain: float, step: int) -> None:
        """A step was measured again: what it showed then counts, if it is remembered."""
        for reward in self._rewards.get(name, ()):
            if reward.step == step:
                reward.worth = _worth(gain)

    def _promise(self, name: str, shares: Mapping[str, float]) -> float:
        doubt = math.sqrt(math.log(self.asks + 1) / (self._asked(name) + 1))
        return self._weights[name] * (shares[name] + _CURIOSITY * doubt)

    def _shares(self) -> dict[str, float]:
        """What each one's steps brought, of what those of the best brought.

        Most steps of anybody gain nothing, and usual gains are a few percent: beside them what is
        uncertain would always look large. Everybody has a few usual steps on trust, since one
        lucky step of few says little.
        """
        sums = {name: sum(each.worth for each in own) for name, own in self._rewards.items()}
        steps = {name: len(own) for name, own in self._rewards.items()}
        usual = sum(sums.values()) / max(1, sum(steps.values()))
        means = {
            name: (sums[name] + _ON_TRUST * usual) / (steps[name] + _ON_TRUST) for name in sums
        }
        most = max(means.values())
        return {name: mean / most if most > 0 else 0.0 for name, mean in means.items()}


def _worth(gain: float) -> float:
    """From 0 for what gained nothing to 1 for the largest gain that counts."""
    return min(max(math.log(gain), 0.0), _LARGEST_GAIN) / _LARGEST_GAIN if gain > 0 else 0.0
