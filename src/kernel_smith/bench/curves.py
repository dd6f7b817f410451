"""Best so far over steps: what an arm had reached after so many first programs and answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kernel_smith.bench import intervals
from kernel_smith.bench.scores import is_unfit
from kernel_smith.records.bench import BenchRow, Refused


class Reached(NamedTuple):
    """After so many steps. Speedups are the lower ends of intervals, as the search saw them."""

    arm: str
    precision: str
    step: int
    problems: int
    correct: float
    fast_1: float
    amsr: float


def curves(rows: Sequence[BenchRow], refused: Refused) -> Iterator[Reached]:
    """For each arm and precision, a line for each step at which anything changed."""
    for arm, precision in dict.fromkeys((row.arm, row.precision) for row in rows):
        own = [row for row in rows if (row.arm, row.precision) == (arm, precision)]
        counted = [row for row in own if refused == "count" or not is_unfit(row)]
        for step in sorted({point.step for row in counted for point in row.curve}):
            best = [best_at(row, step) for row in counted]
            yield Reached(
                arm=arm,
                precision=precision.value,
                step=step,
                problems=len(counted),
                correct=intervals.mean([float(speedup > 0) for speedup in best]),
                fast_1=intervals.mean([float(speedup > 1) for speedup in best]),
                amsr=intervals.amsr(best),
            )


def best_at(row: BenchRow, step: int) -> float:
    """Return the best after so many steps; 0 where there was none."""
    return next((point.speedup for point in reversed(row.curve) if point.step <= step), 0.0)
