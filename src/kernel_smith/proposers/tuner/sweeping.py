"""Sweeps: many values of one structure tried out at once, and the best of them proposed.

An evaluation looks closely at one program. Which of fifty settings of its numbers is worth that can
be seen at a glance. So before a structure's values are proposed, a batch of them is tried out
beside the parent (`TryOut`): values along the lines through the best that is known, and values that
the search suggests. What a sweep showed is a hint to the search; the best two that are clearly
faster than the parent are promised to the judge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kernel_smith.proposers.tuner.search import Search
from kernel_smith.proposers.tuner.space import Values
from kernel_smith.records import MEANINGS, Stage, Sweep, Swept

CONFIGURATIONS = 48
_SHARE_OF_LINES = 0.67
_PROMISED = 2
_WORTH_JUDGING = 1.02  # that is certain of a gain: of fifty that gain nothing one may show a little
# Of programs together, since they travel in one message.
_MOST_CHARACTERS = 4 << 20


def choose(
    search: Search, seed: int, accepts: Callable[[Values], bool], length: int
) -> list[Values]:
    """Values to be tried out together, for a program of so many characters."""
    most = min(CONFIGURATIONS, _MOST_CHARACTERS // max(length, 1))
    search.enqueue_lines(int(_SHARE_OF_LINES * most), seed)
    return search.suggest_many(most, seed, accepts)


@dataclass(frozen=True)
class Findings:
    """What a sweep showed, as it is kept with a proposal: by the score that values would have."""

    hints: tuple[tuple[Values, float | None, bool], ...]
    promised: tuple[Values, ...]
    seconds: float

    @classmethod
    def of(cls, batch: list[Values], sweep: Sweep, score: float, to_beat: float) -> Findings:
        """`score`: the parent's. `to_beat`: the highest that is known of the structure."""
        pairs = list(zip(batch, sweep.swept or [Swept()] * len(batch), strict=True))
        faster = [
            (swept.gain.value, values)
            for values, swept in pairs
            if swept.gain is not None
            and swept.gain.low > _WORTH_JUDGING
            and score * swept.gain.value > to_beat
        ]
        faster.sort(key=lambda pair: pair[0], reverse=True)
        hints = tuple((values, _hint(swept, score), _is_wrong(swept)) for values, swept in pairs)
        return cls(hints, tuple(values for _, values in faster[:_PROMISED]), sweep.seconds)

    def tell(self, search: Search) -> None:
        """Have a search learn it; it may know it already."""
        for values, score, wrong in self.hints:
            search.hint(values, score, wrong=wrong)
        for values in self.promised:
            search.promise(values)

    def written(self) -> dict[str, Any]:
        return {
            "hints": [list(hint) for hint in self.hints],
            "promised": list(self.promised),
            "seconds": self.seconds,
        }

    @classmethod
    def read(cls, written: dict[str, Any]) -> Findings:
        hints = tuple((dict(values), score, wrong) for values, score, wrong in written["hints"])
        promised = tuple(dict(values) for values in written["promised"])
        return cls(hints, promised, written["seconds"])


def _hint(swept: Swept, score: float) -> float | None:
    """Failures score zero, as they do when they are judged."""
    if swept.gain is not None:
        return score * swept.gain.value
    return None if swept.reason is None else 0.0


def _is_wrong(swept: Swept) -> bool:
    return swept.reason is not None and MEANINGS[swept.reason].stage is Stage.INCORRECT
