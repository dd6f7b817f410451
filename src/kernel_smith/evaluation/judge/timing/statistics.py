"""Intervals for speedups: a trimmed mean of paired log ratios, robust against bursts of noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy
import numpy.typing

from kernel_smith.records import Distribution, Interval

_TRIM = 0.2
# Two processes that run the same code differ by about this much, however long they are timed:
# `benchmarks/clock_accuracy.py` shows it as the spread beyond what sampling explains.
_PROCESS_LUCK = 0.005
_WIDEST = 300.0  # of a logarithm that can be undone
_Z = 1.959963984540054
# For one to three degrees of freedom, where the expansion falls short.
_SMALL_QUANTILES = (12.7062, 4.3027, 3.1824)

Floats = numpy.typing.NDArray[numpy.float64]


@dataclass(frozen=True)
class LogRatio:
    """The estimated logarithm of a ratio, and its standard error with degrees of freedom."""

    mean: float
    error: float
    freedom: float

    def allowing_for_luck(self) -> LogRatio:
        """The same, less certain: another pair of processes would have given another ratio.

        One pair computes all workloads of a task, and is lucky or not with all of them. So this
        comes after they are combined, and does not average out.
        """
        return self.allowing_for(_PROCESS_LUCK)

    def allowing_for(self, error: float) -> LogRatio:
        """The same with a second source of error, which is known by itself."""
        variance = self.error**2 + error**2
        sampled = max(self.error**2 / variance, 1e-6) if variance else 1.0
        return LogRatio(self.mean, math.sqrt(variance), self.freedom / sampled**2)

    def interval(self) -> Interval:
        """Finite and above zero, however far off: a process may claim to have taken no time."""
        half = min(student_quantile(self.freedom) * self.error, _WIDEST)
        ends = (self.mean - half, self.mean, self.mean + half)
        low, middle, high = (math.exp(max(-_WIDEST, min(end, _WIDEST))) for end in ends)
        return Interval(value=middle, low=low, high=high)


def estimate(log_ratios: Sequence[float]) -> LogRatio:
    """Trimmed mean with the Tukey-McLaughlin standard error (from the winsorised variance)."""
    values = numpy.sort(numpy.asarray(log_ratios, dtype=numpy.float64))
    count = len(values)
    cut = int(_TRIM * count)
    kept = values[cut : count - cut]
    winsorised = numpy.clip(values, kept[0], kept[-1])
    deviation = float(winsorised.std(ddof=1)) if count > 1 else math.inf
    share = len(kept) / count
    return LogRatio(float(kept.mean()), deviation / (share * math.sqrt(count)), len(kept) - 1)


def usual_sum(values: Sequence[float]) -> float:
    """The sum, if the largest fifth, and at least one, had been like the rest.

    From five rounds on as many ratios are left out of an estimate, so that to stand out in so few
    of them gains nothing.
    And the innocent may. Where a hypervisor takes a processor away, as it likes to in the moment in
    which another one wakes, the system counts the pause as work of whoever ran.
    """
    left_out = max(1, int(_TRIM * len(values)))
    kept = sorted(values)[: max(len(values) - left_out, 1)]
    return sum(kept) * len(values) / len(kept)


def combine(parts: Sequence[LogRatio], weights: Sequence[float]) -> LogRatio:
    """The weighted mean of independent log ratios: the geometric mean of the ratios."""
    total = sum(weights)
    shares = [weight / total for weight in weights]
    mean = sum(share * part.mean for share, part in zip(shares, parts, strict=True))
    variances = [(share * part.error) ** 2 for share, part in zip(shares, parts, strict=True)]
    variance = sum(variances)
    spread = sum(v**2 / max(p.freedom, 1) for v, p in zip(variances, parts, strict=True))
    freedom = variance**2 / spread if spread > 0 else max(part.freedom for part in parts)
    return LogRatio(mean, math.sqrt(variance), freedom)


def student_quantile(freedom: float) -> float:
    """The 97.5% quantile of Student's t distribution, by its expansion around the normal one."""
    if freedom < 1:
        return math.inf
    if freedom < 4:
        return _SMALL_QUANTILES[int(freedom) - 1]
    z, n = _Z, freedom
    first = (z**3 + z) / (4 * n)
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    return z + first + second + third


def distribution(seconds: Sequence[float]) -> Distribution:
    values: Floats = numpy.asarray(seconds, dtype=numpy.float64)
    return Distribution(
        p50=float(numpy.percentile(values, 50)), p99=float(numpy.percentile(values, 99))
    )
