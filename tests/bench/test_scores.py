"""Scores against tables that were computed by hand."""

from __future__ import annotations

import math

import pytest
from bench_rows import interval, row
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.bench import intervals
from kernel_smith.bench.curves import curves
from kernel_smith.bench.scores import average, boards, score
from kernel_smith.records import Interval, Precision
from kernel_smith.records.bench import BenchRow, Cost, CurvePoint

LEVEL_1 = [row("fast", 2.0), row("slow", 0.5), row("wrong"), row("tie", 1.0)]
LEVEL_2 = [row("faster", 4.0, level="level2"), row("no", level="level2", status="refused")]


def value(found: Interval | None) -> float:
    assert found is not None
    assert found.low <= found.value <= found.high
    return found.value


# ---------------------------------------------------------------- one level


def test_a_level_by_hand() -> None:
    scores = score(LEVEL_1)
    assert (scores.problems, scores.solved, scores.unfit) == (4, 3, 0)
    assert value(scores.correct) == 3 / 4
    assert value(scores.amsr) == (2 + 0 + 0 + 1) / 4  # a tie is not below 1
    assert value(scores.geometric_mean) == pytest.approx((2 * 0.5 * 1) ** (1 / 3))
    curve = {p: value(scores.fast[p]) for p in ("0", "0.5", "0.8", "1", "1.5", "2")}
    # Neither is exactly p over p.
    assert curve == {"0": 3 / 4, "0.5": 2 / 4, "0.8": 2 / 4, "1": 1 / 4, "1.5": 1 / 4, "2": 0}


def test_shares_have_wilsons_interval() -> None:
    """The ends as tables of it have them."""
    found = intervals.share(3, 4)
    assert (found.low, found.high) == pytest.approx((0.3006, 0.9544), abs=1e-4)
    none, all_of = intervals.share(0, 1), intervals.share(10, 10)
    assert (none.low, none.high) == pytest.approx((0, 0.7935), abs=1e-4)
    assert (all_of.low, all_of.high) == pytest.approx((0.7225, 1), abs=1e-4)


def test_faster_means_beyond_doubt_against_each_baseline() -> None:
    both = {"eager": interval(2.0, 0.1), "compile": interval(1.05, 0.1)}
    rows = [row("both", 2.0, speedups=both), row("eager alone", 3.0, 0.1), row("wrong")]
    against = score(rows, baselines=("compile",)).against
    assert value(against["eager"].faster) == 2 / 3
    assert value(against["compile"].faster) == 0  # 1.05 may be 0.95
    assert value(against["compile"].geometric_mean) == pytest.approx(1.05)
    assert value(against["eager"].geometric_mean) == pytest.approx(math.sqrt(6))


@pytest.mark.parametrize("rows", [[], [row("no", status="refused")]])
def test_nothing_to_go_by_has_no_figures(rows: list[BenchRow]) -> None:
    scores = score(rows, refused="leave-out")
    assert (scores.problems, scores.unfit) == (0, len(rows))
    assert (scores.correct, scores.amsr, scores.geometric_mean) == (None, None, None)
    assert (scores.fast, scores.against) == ({}, {})
    assert average([scores]).amsr is None


def test_where_all_failed_there_is_no_geometric_mean() -> None:
    scores = score([row("a"), row("b", status="failed"), row("c", status="unfinished")])
    assert (value(scores.correct), value(scores.amsr), scores.geometric_mean) == (0, 0, None)


def test_a_correct_program_that_was_not_timed_earns_nothing_for_speed() -> None:
    scores = score([row("untimed", status="correct"), row("timed", 2.0)])
    assert value(scores.correct) == 1
    assert value(scores.fast["0"]) == 1 / 2
    assert value(scores.amsr) == 1


def test_a_speedup_of_a_problem_that_is_not_solved_counts_nothing() -> None:
    """A run that was stopped has a best so far."""
    stopped = row("stopped", 9.0, status="unfinished")
    assert value(score([stopped]).amsr) == 0


def test_huge_speedups_do_not_overflow() -> None:
    huge = [row(str(number), 1.5e308, 0.1) for number in range(3)]
    scores = score(huge)
    assert value(scores.amsr) == pytest.approx(1.5e308)
    assert value(scores.geometric_mean) == pytest.approx(1.5e308)
    assert math.isfinite(value(average([scores, scores]).amsr))


# ---------------------------------------------------------------- levels, precisions, refusals


@pytest.mark.parametrize(
    ("refused", "correct", "amsr"),
    [("count", (3 / 4 + 1 / 2) / 2, (0.75 + 2) / 2), ("leave-out", 7 / 8, (0.75 + 4) / 2)],
)
def test_levels_are_averaged_unweighted_and_refusals_count_as_told(
    refused: str, correct: float, amsr: float
) -> None:
    (board,) = boards([*LEVEL_1, *LEVEL_2], refused)  # type: ignore[arg-type]
    assert list(board.levels) == ["level1", "level2"]
    assert board.average.unfit == 1
    assert value(board.average.correct) == pytest.approx(correct)
    assert value(board.average.amsr) == pytest.approx(amsr)
    assert value(board.average.geometric_mean) == pytest.approx(math.sqrt(1 * 4))


def test_precisions_and_arms_stand_apart() -> None:
    rows = [row("a", 2.0), row("a", 3.0, precision=Precision.TF32), row("a", 4.0, arm="greedy")]
    found = {(board.arm, board.precision.value): board for board in boards(rows, "count")}
    assert {key: value(board.average.amsr) for key, board in found.items()} == {
        ("islands", "strict"): 2,
        ("islands", "tf32"): 3,
        ("greedy", "strict"): 4,
    }


def test_categories_have_scores_of_their_own_and_cost_adds_up() -> None:
    cost = Cost(evaluations=3, tokens=10, dollars=0.5, device_seconds=2.0)
    rows = [row("a", 2.0, cost=cost), row("b", 8.0, category="scan", cost=cost)]
    (board,) = boards(rows, "count")
    assert {name: value(each.amsr) for name, each in board.categories.items()} == {
        "scan": 8,
        "softmax": 2,
    }
    assert board.average.cost == cost + cost


def test_the_share_of_the_limit_is_a_median_of_what_is_known() -> None:
    rows = [row(str(share), 2.0, limit_share=share) for share in (0.1, 0.5, 0.6, None)]
    assert score(rows).limit_share == 0.5


def test_best_so_far_by_hand() -> None:
    first = row("a", 3.0, curve=(CurvePoint(step=1, speedup=0.5), CurvePoint(step=4, speedup=3.0)))
    second = row("b", 2.0, curve=(CurvePoint(step=2, speedup=2.0),))
    found = [
        (r.step, r.correct, r.fast_1, r.amsr) for r in curves([first, second, row("c")], "count")
    ]
    third = pytest.approx(1 / 3)
    assert found == [
        (1, third, 0, 0),
        (2, pytest.approx(2 / 3), third, pytest.approx(2 / 3)),
        (4, pytest.approx(2 / 3), pytest.approx(2 / 3), pytest.approx(5 / 3)),
    ]


# ---------------------------------------------------------------- whatever the figures are

SPEEDUPS = st.floats(min_value=1e-3, max_value=1e6)
MEASURED = st.lists(
    st.none() | st.builds(interval, SPEEDUPS, st.floats(min_value=0, max_value=0.5)),
    min_size=1,
    max_size=6,
)


@given(MEASURED)
def test_an_interval_holds_its_value_and_more_problems_that_fail_lower_it(
    measured: list[Interval | None],
) -> None:
    found = intervals.drawn_again(measured, intervals.amsr)
    assert 0 <= found.low <= found.value <= found.high
    worse = intervals.drawn_again([*measured, None], intervals.amsr)
    assert worse.value <= found.value


@given(st.integers(0, 50), st.integers(1, 50))
def test_a_share_lies_within_its_interval_and_the_interval_within_bounds(
    hits: int, of: int
) -> None:
    found = intervals.share(min(hits, of), of)
    assert 0 <= found.low <= found.value <= found.high <= 1


@given(st.lists(st.builds(interval, SPEEDUPS, st.floats(0, 0.9)), min_size=1, max_size=5))
def test_an_average_is_no_less_certain_than_its_parts(parts: list[Interval]) -> None:
    found = intervals.average(parts)
    assert found.low <= found.value <= found.high
    widest = max(part.high - part.low for part in parts)
    assert found.high - found.low <= widest * (1 + 1e-9) + 1e-9
