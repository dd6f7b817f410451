"""Scores of the rows of one arm at one precision: per level, per category, and averaged.

| score | definition |
|---|---|
| correct | share of problems with a program that passed every gate of the judge |
| fast_p | share that is correct and more than p times as fast as eager PyTorch |
| AMSR | mean speedup over eager; below 1, wrong or not timed counts 0 |
| geometric mean | of the speedups of correct, timed programs alone |
| faster than B | share whose whole interval against baseline B lies above 1 |

The average is that of the levels, unweighted, as in the Kernel-Smith paper.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from functools import partial
from typing import get_args

from kernel_smith.bench import intervals
from kernel_smith.records import Interval, Precision, Unfit
from kernel_smith.records.bench import Against, BenchRow, Board, Cost, Refused, Scores

EAGER = "eager"
THRESHOLDS = (0.0, 0.5, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0)
_UNFIT = get_args(Unfit)


def is_unfit(row: BenchRow) -> bool:
    """Can the problem not be judged, whoever solves it?"""
    return row.status in _UNFIT


def speedup_of(row: BenchRow, baseline: str = EAGER) -> Interval | None:
    """Return the winner's, if the problem was solved and the program timed."""
    return row.speedups.get(baseline) if row.status == "correct" else None


def boards(rows: Sequence[BenchRow], refused: Refused) -> list[Board]:
    """One for each arm and precision, in the order of their first rows."""
    keys = dict.fromkeys((row.arm, row.precision) for row in rows)
    return [_board(arm, precision, rows, refused) for arm, precision in keys]


def _board(arm: str, precision: Precision, rows: Sequence[BenchRow], refused: Refused) -> Board:
    own = [row for row in rows if (row.arm, row.precision) == (arm, precision)]
    scores = partial(score, refused=refused, baselines=_baselines(own))
    by_level = {
        level: scores([row for row in own if row.level == level])
        for level in sorted({row.level for row in own})
    }
    by_category = {
        category: scores([row for row in own if row.category == category])
        for category in sorted({row.category for row in own})
    }
    return Board(
        arm=arm,
        precision=precision,
        average=average(list(by_level.values())),
        levels=by_level,
        categories=by_category,
        made_up=any(row.made_up for row in own),
    )


def _baselines(rows: Iterable[BenchRow]) -> tuple[str, ...]:
    """Those besides eager."""
    return tuple(dict.fromkeys(name for row in rows for name in row.speedups if name != EAGER))


def score(
    rows: Sequence[BenchRow], refused: Refused = "count", baselines: Sequence[str] = ()
) -> Scores:
    """Return what these rows come to; where none of them counts, there are no figures.

    `baselines`: those besides eager that winners were held against.
    """
    counted = [row for row in rows if refused == "count" or not is_unfit(row)]
    speedups = [speedup_of(row) for row in counted]
    solved = sum(row.status == "correct" for row in counted)
    known = [row.limit_share for row in counted if row.limit_share is not None]
    against = {name: _against(counted, name) for name in (EAGER, *baselines)} if counted else {}
    return Scores(
        problems=len(counted),
        unfit=sum(map(is_unfit, rows)),
        solved=solved,
        correct=intervals.share(solved, len(counted)) if counted else None,
        fast={f"{p:g}": _over(p, counted) for p in THRESHOLDS} if counted else {},
        amsr=intervals.drawn_again(speedups, intervals.amsr) if counted else None,
        geometric_mean=against[EAGER].geometric_mean if counted else None,
        against=against,
        limit_share=statistics.median(known) if known else None,
        cost=sum((row.cost for row in rows), Cost()),
    )


def _over(p: float, rows: Sequence[BenchRow]) -> Interval:
    """A speedup of exactly p is not over p. With p = 0 this is what is correct and timed."""
    measured = (speedup_of(row) for row in rows)
    return intervals.share(sum(m is not None and m.value > p for m in measured), len(rows))


def _against(rows: Sequence[BenchRow], baseline: str) -> Against:
    measured = (speedup_of(row, baseline) for row in rows)
    faster = sum(m is not None and m.low > 1 for m in measured)
    return Against(
        faster=intervals.share(faster, len(rows)), geometric_mean=_geometric_mean(rows, baseline)
    )


def _geometric_mean(rows: Sequence[BenchRow], baseline: str) -> Interval | None:
    timed = [m for row in rows if (m := speedup_of(row, baseline)) is not None]
    return intervals.drawn_again(timed, intervals.geometric_mean) if timed else None


def average(levels: Sequence[Scores]) -> Scores:
    """Return the unweighted mean of the levels; those without a problem that counts are left
    out."""
    counted = [level for level in levels if level.problems]
    baselines = dict.fromkeys(name for level in counted for name in level.against)
    known = [level.limit_share for level in counted if level.limit_share is not None]
    return Scores(
        problems=sum(level.problems for level in levels),
        unfit=sum(level.unfit for level in levels),
        solved=sum(level.solved for level in levels),
        correct=_mean(level.correct for level in counted),
        fast={
            p: intervals.average([level.fast[p] for level in counted])
            for p in (counted[0].fast if counted else ())
        },
        amsr=_mean(level.amsr for level in counted),
        geometric_mean=_mean_ratio(level.geometric_mean for level in counted),
        against={
            name: Against(
                faster=intervals.average([level.against[name].faster for level in counted]),
                geometric_mean=_mean_ratio(level.against[name].geometric_mean for level in counted),
            )
            for name in baselines
        },
        limit_share=statistics.fmean(known) if known else None,
        cost=sum((level.cost for level in levels), Cost()),
    )


def _mean(parts: Iterable[Interval | None]) -> Interval | None:
    known = [part for part in parts if part is not None]
    return intervals.average(known) if known else None


def _mean_ratio(parts: Iterable[Interval | None]) -> Interval | None:
    known = [part for part in parts if part is not None]
    return intervals.average_of_ratios(known) if known else None
