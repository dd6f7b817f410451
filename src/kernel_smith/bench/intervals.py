"""95% intervals of shares and of means over problems.

A share's is Wilson's. A mean's comes from drawing problems again, with replacement, each of them
with a speedup drawn from what was measured of it: so it says what other problems of the kind, and
another measuring, might have shown. The mean of several levels has the interval that follows from
theirs (recovered variances: Zou and Donner 2008).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

from kernel_smith.records import Interval

DRAWS = 1000
_Z = 1.959963984540054
_LARGEST_LOG = 700.0  # whose exponential is a number still

Figure = Callable[[Sequence[float]], float]
"""Makes one number of the speedups of several problems."""


def share(hits: int, of: int) -> Interval:
    """Of one problem or more."""
    value = hits / of
    middle = (value + _Z**2 / (2 * of)) / (1 + _Z**2 / of)
    spread = math.sqrt(value * (1 - value) / of + _Z**2 / (4 * of**2)) * _Z / (1 + _Z**2 / of)
    return around(value, max(0.0, middle - spread), min(1.0, middle + spread))


def mean(values: Sequence[float]) -> float:
    """Divided before they are added: the sum of large ones need not be a number."""
    return math.fsum(value / len(values) for value in values)


def amsr(speedups: Sequence[float]) -> float:
    """Return the mean speedup where one below 1, or none at all, counts 0."""
    return mean([speedup if speedup >= 1 else 0.0 for speedup in speedups])


def geometric_mean(speedups: Sequence[float]) -> float:
    """Of speedups above zero."""
    return math.exp(mean([math.log(speedup) for speedup in speedups]))


def drawn_again(measured: Sequence[Interval | None], figure: Figure) -> Interval:
    """Return a figure of one problem or more; None: the problem has no speedup, which is 0."""
    rng = random.Random(0)
    logs = [_log_and_error(each) for each in measured]
    figures = sorted(
        figure([_draw(each, rng) for each in rng.choices(logs, k=len(logs))]) for _ in range(DRAWS)
    )
    value = figure([0.0 if each is None else each.value for each in measured])
    return around(value, *_ends(figures))


def paired_difference(pairs: Sequence[tuple[Interval | None, Interval | None]]) -> Interval:
    """Tell how much more the second of each pair adds to the AMSR, over one pair or more."""
    rng = random.Random(0)
    logs = [(_log_and_error(first), _log_and_error(second)) for first, second in pairs]
    drawn = sorted(
        _more([(_draw(first, rng), _draw(second, rng)) for first, second in chosen])
        for chosen in (rng.choices(logs, k=len(logs)) for _ in range(DRAWS))
    )
    value = _more([(first.value if first else 0.0, s.value if s else 0.0) for first, s in pairs])
    return around(value, *_ends(drawn))


def paired_shares(gained: int, lost: int, of: int) -> Interval:
    """Return the difference of two shares of the same problems: Agresti and Min 2005."""
    value, larger = (gained - lost) / of, of + 2
    middle = (gained - lost) / larger
    spread = _Z * math.sqrt((gained + lost + 1) - (gained - lost) ** 2 / larger) / larger
    return around(value, max(-1.0, middle - spread), min(1.0, middle + spread))


def _more(pairs: Sequence[tuple[float, float]]) -> float:
    return amsr([second for _, second in pairs]) - amsr([first for first, _ in pairs])


def _ends(figures: Sequence[float]) -> tuple[float, float]:
    """Return the ends of what lies in the middle of sorted numbers."""
    return figures[round(0.025 * len(figures))], figures[round(0.975 * len(figures)) - 1]


def average(parts: Sequence[Interval]) -> Interval:
    """Return the unweighted mean of independent figures."""
    value = mean([part.value for part in parts])
    below = math.hypot(*((part.value - part.low) / len(parts) for part in parts))
    above = math.hypot(*((part.high - part.value) / len(parts) for part in parts))
    return around(value, value - below, value + above)


def average_of_ratios(parts: Sequence[Interval]) -> Interval:
    """Return the same for ratios above zero: the mean of their logarithms."""
    mean_log = average([_apply(math.log, part) for part in parts])
    return _apply(lambda log: math.exp(min(log, _LARGEST_LOG)), mean_log)


def around(value: float, low: float, high: float) -> Interval:
    """Where only a few draws reach a threshold, the value itself may lie outside of most."""
    return Interval(value=value, low=min(low, value), high=max(high, value))


def _apply(function: Callable[[float], float], part: Interval) -> Interval:
    return Interval(value=function(part.value), low=function(part.low), high=function(part.high))


def _log_and_error(measured: Interval | None) -> tuple[float, float] | None:
    if measured is None:
        return None
    error = 0.0
    if 0 < measured.low <= measured.high:
        error = (math.log(measured.high) - math.log(measured.low)) / (2 * _Z)
    return math.log(measured.value), error


def _draw(log_and_error: tuple[float, float] | None, rng: random.Random) -> float:
    if log_and_error is None:
        return 0.0
    return math.exp(min(rng.gauss(*log_and_error), _LARGEST_LOG))
