"""What a run has learned about its changes, in sentences for whoever proposes the next one."""

from __future__ import annotations

from dataclasses import dataclass, field

_PAYS = 1.03  # gains below are as well noise
_OFTEN = 3
_SHOWN = 4
_LONGEST_NAME = 100


@dataclass
class Lessons:
    """Gains by kind of change: the speed of a program over that of the one it was made from."""

    _gains: dict[str, list[float]] = field(default_factory=dict)

    def note(self, summary: str, gain: float) -> None:
        """Zero is the gain of a change that broke the program."""
        kind = _kind(summary)
        if kind:
            self._gains.setdefault(kind, []).append(gain)

    def told(self) -> tuple[str, ...]:
        """What paid most, and what was tried often in vain."""
        best = {kind: max(gains) for kind, gains in self._gains.items()}
        paid = sorted((k for k in best if best[k] >= _PAYS), key=lambda k: -best[k])
        vain = [k for k, gains in self._gains.items() if len(gains) >= _OFTEN and best[k] < _PAYS]
        vain.sort(key=lambda k: -len(self._gains[k]))
        return (
            *(self._praise(kind) for kind in paid[:_SHOWN]),
            *(self._warning(kind) for kind in vain[:_SHOWN]),
        )

    def _praise(self, kind: str) -> str:
        gains = self._gains[kind]
        tries = f", in {len(gains)} tries" if len(gains) > 1 else ""
        return f"{kind}: made a program {max(gains):.2f} times as fast{tries}"

    def _warning(self, kind: str) -> str:
        gains = self._gains[kind]
        broken = sum(gain == 0 for gain in gains)
        failed = f", of which {broken} broke the program" if broken else ""
        return f"{kind}: {len(gains)} tries without a gain{failed}"


def _kind(summary: str) -> str:
    """Proposers that make named changes put the name first: `unroll-loop: loop over k (by 8)`."""
    name, colon, _ = summary.partition(":")
    named = bool(colon) and " " not in name
    return (name if named else " ".join(summary.split()))[:_LONGEST_NAME]
