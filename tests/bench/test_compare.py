"""Two results on the same problems, and conditions on what they differ by."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench_rows import HERE, result, row

from kernel_smith.bench import intervals
from kernel_smith.bench.compare import Comparison, Side, compare, pair_sides, read_side
from kernel_smith.bench.conditions import NAMES, Condition, figures
from kernel_smith.bench.folder import write_result
from kernel_smith.errors import BadInput
from kernel_smith.records.bench import BenchRow

FIRST = [row("a", 2.0, 0.01), row("b", 4.0, 0.01), row("c", 1.0, 0.01), row("d"), row("e", 3.0)]
SECOND = [row("a", 4.0, 0.01), row("b", 2.0, 0.01), row("c", 1.01, 0.01), row("d", 2.0), row("e")]


def compared(first: list[BenchRow], second: list[BenchRow]) -> Comparison:
    (found,) = compare(Side("A", first, (HERE,)), Side("B", second, (HERE,)))
    return found


def test_a_comparison_by_hand() -> None:
    found = compared(FIRST, SECOND)
    assert (found.paired, found.left_out, found.other_places) == (5, (), False)
    assert (found.gained, found.lost) == (("d",), ("e",))
    assert (found.faster, found.slower) == (("a",), ("b",))  # c may be either
    assert found.ratio is not None and found.amsr is not None
    assert found.correct is not None and found.fast_1 is not None
    assert found.ratio.value == pytest.approx((2 * 0.5 * 1.01) ** (1 / 3))
    assert (found.correct.a, found.correct.b, found.correct.difference.value) == (0.8, 0.8, 0)
    assert (found.fast_1.a, found.fast_1.b) == (3 / 5, 4 / 5)
    assert found.amsr.a == pytest.approx((2 + 4 + 1 + 0 + 3) / 5)
    assert found.amsr.b == pytest.approx((4 + 2 + 1.01 + 2 + 0) / 5)
    difference = found.amsr.difference
    assert difference.value == pytest.approx(found.amsr.b - found.amsr.a)
    assert difference.low < 0 < difference.high


def test_levels_are_averaged_unweighted() -> None:
    first = [row("a", 1.0), row("b", 1.0), row("c", 1.0, level="level2")]
    second = [row("a", 2.0), row("b", 2.0), row("c", 6.0, level="level2")]
    found = compared(first, second)
    assert found.amsr is not None
    assert found.amsr.difference.value == pytest.approx((1 + 5) / 2)


def test_what_has_no_counterpart_is_left_out_by_name() -> None:
    second = [
        row("a", 4.0),
        row("b", 2.0, task_hash="another text"),
        row("c", status="refused"),
        row("d", status="unfinished"),
        row("new", 9.0),
    ]
    found = compared(FIRST, second)
    assert found.paired == 1
    assert set(found.left_out) == {"b", "c", "d", "e", "new"}


def test_nothing_in_common_has_no_figures() -> None:
    found = compared([row("a", 2.0)], [row("b", 2.0)])
    assert (found.paired, found.correct, found.amsr, found.ratio) == (0, None, None, None)


def test_the_same_result_twice_differs_by_nothing_but_is_not_certain_of_it() -> None:
    found = compared(FIRST, FIRST)
    assert found.correct is not None and found.amsr is not None
    assert found.correct.difference.value == found.amsr.difference.value == 0
    assert found.correct.difference.low < 0 < found.correct.difference.high
    assert (found.gained, found.lost, found.faster, found.slower) == ((), (), (), ())


def test_a_difference_of_paired_shares_by_hand() -> None:
    """With half a problem added to each of the four cells: 8.5 gained and 2.5 lost of 52, so 6/52
    with a variance of (11 - 36/52) / 52^2, which is 0.06174 squared."""
    found = intervals.paired_shares(8, 2, 50)
    assert found.value == 6 / 50
    assert (found.low, found.high) == pytest.approx((6 / 52 - 0.12101, 6 / 52 + 0.12101), abs=1e-4)


# ---------------------------------------------------------------- which arms of which results


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    both = [*FIRST, *(each.model_copy(update={"arm": "greedy"}) for each in SECOND)]
    write_result(tmp_path / "both", result(both))
    write_result(tmp_path / "one", result(FIRST))
    return tmp_path


def test_arms_are_named_or_paired_by_their_names(folder: Path) -> None:
    both, one = str(folder / "both"), str(folder / "one")
    named = pair_sides(read_side(f"{both}:islands"), read_side(f"{both}:greedy"))
    assert [(a.name, b.name) for a, b in named] == [(f"{both}:islands", f"{both}:greedy")]
    by_name = pair_sides(read_side(both), read_side(one))
    assert [(a.name, b.name) for a, b in by_name] == [(f"{both}:islands", f"{one}:islands")]
    with pytest.raises(BadInput, match="no arms to pair"):
        pair_sides(read_side(both), read_side(both))
    with pytest.raises(BadInput, match="has no arm 'uct'"):
        read_side(f"{both}:uct")


def test_other_hardware_is_told() -> None:
    (found,) = compare(Side("A", FIRST, (HERE,)), Side("B", SECOND, ()))
    assert found.other_places


# ---------------------------------------------------------------- conditions


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("lost > 0", True),
        ("lost > 1 or slower > 1", False),
        ("lost == 1 and gained == 1", True),
        ("not (correct.b < correct.a)", True),
        ("0.5 < ratio.value <= 2", True),
        ("amsr.change * 2 < -(1 - 0.5) / 5", True),
        ("amsr.high < 0", False),
        ("fast_1.b - fast_1.a > 0.19", True),
        ("left_out + paired == 5", True),
    ],
)
def test_a_condition_holds_or_not(text: str, holds: bool) -> None:
    assert Condition(text).holds(compared(FIRST, SECOND)) is holds


@pytest.mark.parametrize(
    "text",
    [
        *("", "5", "amsr", "amsr.change", "amsr.mean < 1", "lost >", "lost in (1, 2)"),
        *("1 / 0 > lost", "lost ** 9 > 1", "'a' < 'b'", "[1] == 1"),
        *("__import__('os') == 1", "open('f') < 1"),
    ],
)
def test_what_is_no_condition_is_refused_before_anything_is_compared(text: str) -> None:
    with pytest.raises(BadInput, match="--fail-if"):
        Condition(text)


def test_a_figure_that_is_not_there_is_no_pass() -> None:
    nothing = compared([row("a", 2.0)], [row("b", 2.0)])
    with pytest.raises(BadInput, match=r"there is no ratio\.low"):
        Condition("ratio.low < 1").holds(nothing)


def test_every_name_has_a_figure() -> None:
    assert set(figures(compared(FIRST, SECOND))) == set(NAMES)
    assert set(figures(compared([row("a")], [row("b")]))) == set(NAMES)
