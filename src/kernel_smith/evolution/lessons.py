"""What a run has learned about its changes, in sentences for whoever proposes the next one."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

_PAYS = 1.03  # gains below are as well noise
_OFTEN = 3
_SHOWN = 4
_LONGEST_NAME = 100


@dataclass
class _Tried:
    """One kind of change."""

    best: float = 0.0
    times: int = 0
    broken: int = 0


@dataclass
class Lessons:
    """Gains by kind of change: the speed of a program over that of the one it was made from."""

    _kinds: dict[str, _Tried] = field(default_factory=dict)
    _paid: set[str] = field(default_factory=set)
    _vain: set[str] = field(default_factory=set)

    def note(self, summary: str, gain: float) -> None:
        """Zero is the gain of a change that broke the program."""
        kind = _kind(summary)
        if not kind:
            return
        tried = self._kinds.setdefault(kind, _Tried())
        tried.best = max(tried.best, gain)
        tried.times += 1
        tried.broken += gain == 0
        if tried.best >= _PAYS:
            self._paid.add(kind)
            self._vain.discard(kind)
        elif tried.times >= _OFTEN:
            self._vain.add(kind)

    def told(self) -> tuple[str, ...]:
        """What paid most, and what was tried often in vain."""
        kinds = self._kinds
        paid = heapq.nlargest(_SHOWN, self._paid, key=lambda kind: (kinds[kind].best, kind))
        vain = heapq.nlargest(_SHOWN, self._vain, key=lambda kind: (kinds[kind].times, kind))
        return (*map(self._praise, paid), *map(self._warning, vain))

    def _praise(self, kind: str) -> str:
        tried = self._kinds[kind]
        times = f", in {tried.times} tries" if tried.times > 1 else ""
        return f"{kind}: made a program {tried.best:.2f} times as fast{times}"

    def _warning(self, kind: str) -> str:
        tried = self._kinds[kind]
        failed = f", of which {tried.broken} broke the program" if tried.broken else ""
        return f"{kind}: {tried.times} tries without a gain{failed}"


def _kind(summary: str) -> str:
    """Proposers that make named changes put the name first: `unroll-loop: loop over k (by 8)`."""
    name, colon, _ = summary.partition(":")
    named = bool(colon) and " " not in name
    return (name if named else " ".join(summary.split()))[:_LONGEST_NAME]
