"""How well sweeps agree with the judge, where both have looked at the same change.

python benchmarks/choices_table.py TABLE.jsonl --report
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from kernel_smith.records import Interval
from kernel_smith.training.choices.rows import Judged
from kernel_smith.training.choices.table import State

_Z = 1.96
_MEDIAN_OF_SQUARES = 0.455  # of a standard normal variable

Pair = tuple[Judged, Judged]
"""What a sweep showed of a change, and what the judge said."""


def agreement(states: Iterable[State]) -> dict[str, Any]:
    """Return counts and figures: of changes that a sweep saw gain, which were picked as the best of
    their parents, and of others."""
    pairs = [
        (swept, state.judged[name])
        for state in states
        for name, swept in state.swept.items()
        if name in state.judged
    ]
    found = {
        "sweep saw a gain": [pair for pair in pairs if pair[0].reward > 0],
        "others": [pair for pair in pairs if pair[0].reward == 0],
    }
    return {name: _figures(own) for name, own in found.items() if own}


def _figures(pairs: list[Pair]) -> dict[str, Any]:
    timed = [
        (swept.gain, judged.gain)
        for swept, judged in pairs
        if swept.gain is not None and judged.gain is not None
    ]
    return {
        "changes": len(pairs),
        "right in the sweep, not for the judge": _differ(pairs, in_sweep=True),
        "right for the judge, not in the sweep": _differ(pairs, in_sweep=False),
        "timed by both": len(timed),
        "judge: faster beyond doubt": sum(judged.low > 1 for _, judged in timed),
        "judge: slower beyond doubt": sum(judged.high < 1 for _, judged in timed),
    } | (_distance(timed) if len(timed) > 1 else {})


def _differ(pairs: list[Pair], *, in_sweep: bool) -> int:
    """How many are right for one of them alone. What was not timed is not said to be wrong."""
    rights = [(swept.reason is None, judged.reason is None) for swept, judged in pairs]
    return rights.count((in_sweep, not in_sweep))


def _distance(timed: list[tuple[Interval, Interval]]) -> dict[str, float]:
    apart = [math.log(judged.value / swept.value) for swept, judged in timed]
    expected = [math.hypot(_error(swept), _error(judged)) for swept, judged in timed]
    within = [abs(each) < _Z * error for each, error in zip(apart, expected, strict=True)]
    return {
        "judged over swept gain, geometric mean": round(math.exp(statistics.mean(apart)), 4),
        "differ by as much as the intervals allow": round(sum(within) / len(within), 3),
        "typical half of a sweep's interval": _typical(swept for swept, _ in timed),
        "typical half of the judge's interval": _typical(judged for _, judged in timed),
        "deviation that no interval tells of": _luck(apart, expected),
    }


def _luck(apart: Sequence[float], expected: Sequence[float]) -> float:
    """What deviates in addition, if the median of squares is to be as in a normal distribution."""

    def median_of_squares(luck: float) -> float:
        pairs = zip(apart, expected, strict=True)
        return statistics.median(each**2 / (error**2 + luck**2) for each, error in pairs)

    low, high = 0.0, max(map(abs, apart)) + 1e-9
    if median_of_squares(1e-9) <= _MEDIAN_OF_SQUARES:
        return 0.0
    for _ in range(40):
        middle = (low + high) / 2
        enough = median_of_squares(middle) <= _MEDIAN_OF_SQUARES
        low, high = (low, middle) if enough else (middle, high)
    return round(high, 4)


def _error(gain: Interval) -> float:
    return math.log(gain.high / gain.low) / (2 * _Z)


def _typical(gains: Iterable[Interval]) -> float:
    return round(statistics.median(_Z * _error(gain) for gain in gains), 4)
