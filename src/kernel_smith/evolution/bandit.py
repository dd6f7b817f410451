"""Which proposer is asked next: those that paid are asked more often, and none is forgotten.

Each proposer's reward is the gain of its recent steps over their parents, per second of evaluation.
The choice is the largest of mean plus uncertainty (UCB), scaled by the weight that the user gave.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping

_REMEMBERED = 40  # steps per proposer: what paid at the start may not pay later
_CURIOSITY = 0.8
_LARGEST_GAIN = math.log(2)  # one lucky step must not decide everything


class Bandit:
    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = {name: weight for name, weight in weights.items() if weight > 0}
        self._rewards: dict[str, deque[float]] = {
            name: deque(maxlen=_REMEMBERED) for name in self._weights
        }
        self._asked = dict.fromkeys(self._weights, 0)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._weights)

    def choose(self, available: Mapping[str, bool] | None = None) -> str | None:
        """The proposer to ask; None if none is available."""
        names = [name for name in self._weights if available is None or available.get(name, True)]
        if not names:
            return None
        chosen = max(names, key=self._promise)
        self._asked[chosen] += 1
        return chosen

    def reward(self, name: str, gain: float) -> None:
        """`gain` is the child's certain speedup over the parent's; 0 for a child that failed."""
        if name in self._rewards:
            worth = min(max(math.log(gain), 0.0), _LARGEST_GAIN) if gain > 0 else 0.0
            self._rewards[name].append(worth / _LARGEST_GAIN)

    def _promise(self, name: str) -> float:
        rewards, asked = self._rewards[name], self._asked[name]
        mean = (sum(rewards) + 0.5) / (len(rewards) + 1)
        total = sum(self._asked.values())
        doubt = math.sqrt(math.log(total + 1) / (asked + 1))
        return self._weights[name] * (mean + _CURIOSITY * doubt)
