"""Which of several models is asked: whoever gains most for what its answers cost, more often.

A model is drawn by its weight, times what is known of its gain per dollar beside that of the best.
Where not all prices are known, tokens stand for dollars. A model about which little is known is
taken for a usual one at its own price, and nobody is forgotten.
"""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernel_smith.proposers.model.config import Model
from kernel_smith.records import Usage

_ON_TRUST = 6  # answers
_LEAST = 0.05  # of the best one's chance
_LARGEST_GAIN = math.log(2)  # one lucky answer must not decide everything
_HOPE = 0.02  # the usual gain before anything is known


@dataclass
class _Record:
    """What one model's answers have cost and gained."""

    answers: int = 0
    price: float = 0.0
    gained: float = 0.0
    """The sum of the logarithms of what was certain of their gains."""


class Choice:
    """Shared by threads."""

    def __init__(self, models: Sequence[Model]) -> None:
        self._priced = all(model.priced for model in models)
        self._records = {model.name: _Record() for model in models}
        self._lock = threading.Lock()

    def note(self, name: str, usage: Usage, gain: float) -> None:
        """Count an answer, and what is certain of its program's gain over the parent: 0 for one
        that failed, or that held no program."""
        tokens = usage.prompt_tokens + usage.completion_tokens
        with self._lock:
            record = self._records.get(name)
            if record is not None:  # a run that is resumed may have other models
                record.answers += 1
                record.price += usage.dollars if self._priced else tokens
                record.gained += min(max(math.log(gain), 0.0), _LARGEST_GAIN) if gain > 0 else 0.0

    def draw(self, models: Sequence[Model], chance: random.Random) -> Model:
        """Choose one of these."""
        shares = self._shares()
        weights = [model.weight * max(shares[model.name], _LEAST) for model in models]
        return chance.choices(models, weights)[0]

    def _shares(self) -> Mapping[str, float]:
        """Return what each model may be hoped to gain for its price, beside the best of them."""
        with self._lock:
            records = self._records.values()
            answers = sum(each.answers for each in records)
            usual = (sum(each.gained for each in records) + _HOPE) / (answers + 1)
            prices = {
                name: each.price / each.answers
                for name, each in self._records.items()
                if each.price > 0
            }
            # One that has not answered yet is taken for as cheap as the cheapest.
            cheapest = min(prices.values(), default=1.0)
            worth = {
                name: (each.gained + _ON_TRUST * usual)
                / (each.answers + _ON_TRUST)
                / prices.get(name, cheapest)
                for name, each in self._records.items()
            }
        most = max(worth.values())
        return {name: each / most for name, each in worth.items()}
