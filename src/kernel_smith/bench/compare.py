"""Two arms on the same problems, pair by pair: what the second gains, and what it loses.

Speedups are each over eager PyTorch on its own machine. Where the machines differ, the comparison
is one of speedups, and not of times; it says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from kernel_smith.bench import intervals
from kernel_smith.bench.folder import read_result
from kernel_smith.bench.scores import is_unfit, speedup_of
from kernel_smith.errors import BadInput
from kernel_smith.records import Interval, Record
from kernel_smith.records.bench import BenchResult, BenchRow, Place

Pair = tuple[BenchRow, BenchRow]


class Change(Record):
    """One score of both, and the difference; levels are averaged unweighted."""

    a: float
    b: float
    difference: Interval


class Comparison(Record):
    a: str
    b: str
    precision: str
    paired: int
    left_out: tuple[str, ...] = Field(
        description="problems of one alone, or with another text, or that cannot be judged"
    )
    other_places: bool = Field(description="were the two measured on other hardware or versions?")
    correct: Change | None
    fast_1: Change | None
    amsr: Change | None
    ratio: Interval | None = Field(
        description="geometric mean of the second's speedup over the first's, where both solved it"
    )
    gained: tuple[str, ...] = Field(description="solved by the second alone")
    lost: tuple[str, ...] = Field(description="solved by the first alone")
    faster: tuple[str, ...] = Field(description="beyond doubt faster in the second")
    slower: tuple[str, ...]


class Side(NamedTuple):
    """The rows of one arm, and where they were measured."""

    name: str
    rows: list[BenchRow]
    places: tuple[Place, ...]


def read_side(word: str) -> list[Side]:
    """FOLDER, or FOLDER:ARM where it holds several: one for each arm that is meant."""
    folder, arm = split_side(word)
    result = read_result(Path(folder))
    names = [each.name for each in result.arms]
    if arm and arm not in names:
        raise BadInput(f"{folder} has no arm {arm!r}", hint=f"choose from: {', '.join(names)}")
    return [_side(result, name, folder) for name in ([arm] if arm else names)]


def _side(result: BenchResult, arm: str, folder: str) -> Side:
    rows = [row for row in result.rows if row.arm == arm]
    return Side(f"{folder}:{arm}", rows, result.stamp.places)


def split_side(word: str) -> tuple[str, str]:
    """Return the folder, and the arm or nothing."""
    folder, colon, arm = word.rpartition(":")
    return (word, "") if not colon or Path(word).exists() else (folder, arm)


def pair_sides(first: Sequence[Side], second: Sequence[Side]) -> list[tuple[Side, Side]]:
    """Return one arm with one, or those of the same name. Raises `BadInput` where that says
    nothing."""
    if len(first) == len(second) == 1:
        return [(first[0], second[0])]
    by_name = {_arm(side): side for side in second}
    pairs = [(side, by_name[_arm(side)]) for side in first if _arm(side) in by_name]
    if not pairs or any(a.name == b.name for a, b in pairs):
        known = ", ".join(side.name for side in (*first, *second))
        raise BadInput(
            "the two have no arms to pair", hint=f"name one of each, as FOLDER:ARM: {known}"
        )
    return pairs


def _arm(side: Side) -> str:
    return side.name.rpartition(":")[2]


def compare(first: Side, second: Side) -> list[Comparison]:
    """One for each precision that both have."""
    precisions = dict.fromkeys(row.precision.value for row in first.rows)
    both = [p for p in precisions if any(row.precision.value == p for row in second.rows)]
    return [_compare(first, second, precision) for precision in both]


def _compare(first: Side, second: Side, precision: str) -> Comparison:
    theirs = {row.key: row for row in second.rows if row.precision.value == precision}
    own = {row.key: row for row in first.rows if row.precision.value == precision}
    pairs = [(row, theirs[key]) for key, row in own.items() if _is_pair(row, theirs.get(key))]
    used = {row.key for row, _ in pairs}
    left_out = dict.fromkeys(key[0] for key in (*own, *theirs) if key not in used)
    ratios = _ratios(pairs)
    return Comparison(
        a=first.name,
        b=second.name,
        precision=precision,
        paired=len(pairs),
        left_out=tuple(left_out),
        other_places=_is_elsewhere(first, second),
        correct=_share_change(pairs, _is_solved),
        fast_1=_share_change(pairs, _is_fast),
        amsr=_amsr_change(pairs),
        ratio=intervals.drawn_again(list(ratios.values()), intervals.geometric_mean)
        if ratios
        else None,
        gained=tuple(a.problem for a, b in pairs if _is_solved(b) and not _is_solved(a)),
        lost=tuple(a.problem for a, b in pairs if _is_solved(a) and not _is_solved(b)),
        faster=tuple(name for name, ratio in ratios.items() if ratio.low > 1),
        slower=tuple(name for name, ratio in ratios.items() if ratio.high < 1),
    )


def _is_pair(row: BenchRow, other: BenchRow | None) -> bool:
    """The same problem, judged in both. One that was not finished was not judged."""
    if other is None or row.task_hash != other.task_hash:
        return False
    return not any(is_unfit(each) or each.status == "unfinished" for each in (row, other))


def _is_elsewhere(first: Side, second: Side) -> bool:
    return {p.model_dump_json() for p in first.places} != {
        p.model_dump_json() for p in second.places
    }


def _is_solved(row: BenchRow) -> bool:
    return row.status == "correct"


def _is_fast(row: BenchRow) -> bool:
    speedup = speedup_of(row)
    return speedup is not None and speedup.value > 1


def _ratios(pairs: Sequence[Pair]) -> dict[str, Interval]:
    found = {}
    for a, b in pairs:
        first, second = speedup_of(a), speedup_of(b)
        if first is not None and second is not None:
            found[a.problem] = second.over(first)
    return found


def _by_level(pairs: Sequence[Pair]) -> list[list[Pair]]:
    levels = dict.fromkeys(a.level for a, _ in pairs)
    return [[pair for pair in pairs if pair[0].level == level] for level in levels]


def _share_change(pairs: Sequence[Pair], holds: Callable[[BenchRow], bool]) -> Change | None:
    if not pairs:
        return None
    firsts, seconds, differences = [], [], []
    for level in _by_level(pairs):
        first, second = [holds(a) for a, _ in level], [holds(b) for _, b in level]
        gained = sum(b and not a for a, b in zip(first, second, strict=True))
        lost = sum(a and not b for a, b in zip(first, second, strict=True))
        firsts.append(sum(first) / len(level))
        seconds.append(sum(second) / len(level))
        differences.append(intervals.paired_shares(gained, lost, len(level)))
    return _change(firsts, seconds, differences)


def _amsr_change(pairs: Sequence[Pair]) -> Change | None:
    if not pairs:
        return None
    firsts, seconds, differences = [], [], []
    for level in _by_level(pairs):
        both = [(speedup_of(a), speedup_of(b)) for a, b in level]
        firsts.append(intervals.amsr([a.value if a else 0.0 for a, _ in both]))
        seconds.append(intervals.amsr([b.value if b else 0.0 for _, b in both]))
        differences.append(intervals.paired_difference(both))
    return _change(firsts, seconds, differences)


def _change(
    firsts: Sequence[float], seconds: Sequence[float], differences: Sequence[Interval]
) -> Change:
    return Change(
        a=intervals.mean(firsts),
        b=intervals.mean(seconds),
        difference=intervals.average(differences),
    )
