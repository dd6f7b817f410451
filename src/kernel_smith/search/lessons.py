"""What a run has learned about its changes, in sentences for whoever proposes the next one.

The best of many tries flatters a kind of change, so it is told by the mean of the gains that were
certain, and by how many of the tries those were.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field

_PAYS = 1.03  # smaller gains are not worth telling
_OFTEN = 3
_SHOWN = 4
_LONGEST_NAME = 100


@dataclass
class _Tried:
    """One kind of change."""

    gains: dict[int, float] = field(default_factory=dict)
    """What is certain of them, by the number of the step."""
    paid: int = 0
    broken: int = 0
    gained: float = 0.0
    """The sum of the logarithms of those that paid."""

    @property
    def times(self) -> int:
        return len(self.gains)

    @property
    def worth(self) -> float:
        """What a try of this kind may be hoped to bring."""
        return self.gained / self.times

    @property
    def usual(self) -> float:
        """The geometric mean of the gains that paid."""
        return math.exp(self.gained / self.paid)

    def note(self, step: int, gain: float) -> None:
        former = self.gains.get(step)
        if former == gain:
            return
        if former is not None:
            self._count(former, -1)
        self.gains[step] = gain
        self._count(gain, 1)

    def _count(self, gain: float, times: int) -> None:
        """Take a gain in, or out again: `times` is 1 or -1."""
        self.broken += times * (gain == 0)
        if gain >= _PAYS:
            self.paid += times
            self.gained += times * math.log(gain)


@dataclass
class LessonBook:
    """Gains by kind of change: what is certain of a program's speed over its parent's."""

    _kinds: dict[str, _Tried] = field(default_factory=dict)
    _paid: set[str] = field(default_factory=set)
    _vain: set[str] = field(default_factory=set)

    def note(self, step: int, summary: str, gain: float) -> None:
        """Zero is the gain of a change that broke the program. A step's last word counts."""
        kind = _kind(summary)
        if not kind:
            return
        tried = self._kinds.setdefault(kind, _Tried())
        tried.note(step, gain)
        self._paid.discard(kind)
        self._vain.discard(kind)
        if tried.paid:
            self._paid.add(kind)
        elif tried.times >= _OFTEN:
            self._vain.add(kind)

    def lines(self) -> tuple[str, ...]:
        """What paid most, and what was tried often in vain."""
        kinds = self._kinds
        paid = heapq.nlargest(_SHOWN, self._paid, key=lambda kind: (kinds[kind].worth, kind))
        vain = heapq.nlargest(_SHOWN, self._vain, key=lambda kind: (kinds[kind].times, kind))
        return (*map(self._praise, paid), *map(self._warning, vain))

    def _praise(self, kind: str) -> str:
        tried = self._kinds[kind]
        times = f", in {tried.paid} of {tried.times} tries" if tried.times > 1 else ""
        return f"{kind}: made a program at least {tried.usual:.2f} times as fast{times}"

    def _warning(self, kind: str) -> str:
        tried = self._kinds[kind]
        failed = f", of which {tried.broken} broke the program" if tried.broken else ""
        return f"{kind}: {tried.times} tries without a certain gain{failed}"


def _kind(summary: str) -> str:
    """Proposers that make named changes put the name first: `unroll-loop: loop over k (by 8)`."""
    name, colon, _ = summary.partition(":")
    named = bool(colon) and " " not in name
    return (name if named else " ".join(summary.split()))[:_LONGEST_NAME]
