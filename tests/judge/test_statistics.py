"""Intervals that hold what they promise."""

from __future__ import annotations

import math

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.evaluation.judge.timing.statistics import (
    LogRatio,
    combine,
    distribution,
    estimate,
    student_quantile,
    usual_sum,
)

# 97.5% quantiles of Student's t distribution, as printed in statistical tables.
TABLE = {
    1: 12.706,
    2: 4.303,
    3: 3.182,
    4: 2.776,
    5: 2.571,
    6: 2.447,
    8: 2.306,
    10: 2.228,
    15: 2.131,
    20: 2.086,
    30: 2.042,
    60: 2.000,
    120: 1.980,
    10**9: 1.960,
}

log_ratios = st.floats(-3, 3)


@pytest.mark.parametrize(("freedom", "quantile"), TABLE.items())
def test_quantiles_are_those_of_the_tables(freedom: int, quantile: float) -> None:
    assert student_quantile(freedom) == pytest.approx(quantile, rel=3e-3)


@given(st.floats(1, 1e6), st.floats(1, 1e6))
def test_more_freedom_never_widens_an_interval(one: float, other: float) -> None:
    fewer, more = sorted((one, other))
    assert student_quantile(fewer) >= student_quantile(more)


def test_fewer_than_one_degree_of_freedom_says_nothing() -> None:
    assert student_quantile(0.5) == math.inf


def test_luck_widens_an_interval_to_a_floor_and_hardly_a_wide_one() -> None:
    for error in (0.0, 1e-6):
        precise = LogRatio(0.1, error, 2).allowing_for_luck()
        assert precise.interval().half_width == pytest.approx(0.0098, rel=0.02)
    rough = LogRatio(0.1, 0.1, 9)
    assert rough.allowing_for_luck().interval().half_width == pytest.approx(
        rough.interval().half_width, rel=0.01
    )


def noisy_log_ratios(rng: numpy.random.Generator, count: int, truth: float) -> list[float]:
    """Both sides jitter by 5%, and every tenth batch is held up, sometimes for long."""
    sides = rng.normal(0, 0.05, (2, count))
    held_up = rng.random((2, count)) < 0.1
    sides += numpy.where(held_up, rng.lognormal(-1, 1, (2, count)), 0)
    return list(math.log(truth) + sides[0] - sides[1])


@pytest.mark.parametrize("mean", [-1e6, 1e6])
def test_a_ratio_beyond_all_numbers_is_still_a_ratio(mean: float) -> None:
    interval = LogRatio(mean, 10.0, 5).interval()
    assert 0 < interval.low <= interval.value <= interval.high < math.inf
    assert math.isfinite(interval.half_width)


@pytest.mark.parametrize("rounds", [5, 10, 20, 50])
def test_the_interval_covers_the_truth_about_95_times_in_100(rounds: int) -> None:
    rng = numpy.random.default_rng(2026)
    truth, trials = 1.37, 1500
    covered = 0
    for _ in range(trials):
        interval = estimate(noisy_log_ratios(rng, rounds, truth)).interval()
        covered += interval.low <= truth <= interval.high
    assert 0.925 <= covered / trials <= 0.985


def test_outliers_hardly_move_the_estimate() -> None:
    rng = numpy.random.default_rng(7)
    calm = list(rng.normal(math.log(2), 0.01, 40))
    disturbed = calm[:-4] + [math.log(2) + 5] * 4
    assert estimate(disturbed).interval().value == pytest.approx(2, rel=0.02)
    assert float(numpy.mean(disturbed)) > math.log(2) + 0.4


@given(st.lists(log_ratios, min_size=2, max_size=40))
def test_the_estimate_lies_within_the_sample_and_its_interval(values: list[float]) -> None:
    interval = estimate(values).interval()
    slack = 1e-9
    assert math.exp(min(values)) * (1 - slack) <= interval.value
    assert interval.value <= math.exp(max(values)) * (1 + slack)
    assert interval.low <= interval.value <= interval.high


@given(st.lists(log_ratios, min_size=2, max_size=40), st.randoms())
def test_the_order_of_the_rounds_does_not_matter(values: list[float], rng: object) -> None:
    shuffled = values[:]
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    assert estimate(shuffled) == estimate(values)


@given(st.lists(log_ratios, min_size=2, max_size=40))
def test_swapping_the_sides_inverts_the_ratio(values: list[float]) -> None:
    forward, backward = estimate(values).interval(), estimate([-v for v in values]).interval()
    assert backward.value == pytest.approx(1 / forward.value)
    assert backward.low == pytest.approx(1 / forward.high, rel=1e-6)


def test_equal_rounds_give_an_interval_without_width() -> None:
    interval = estimate([math.log(1.5)] * 10).interval()
    assert interval.low == pytest.approx(1.5)
    assert interval.high == pytest.approx(1.5)


def test_two_rounds_that_disagree_give_a_wide_interval() -> None:
    interval = estimate([0.0, 0.1]).interval()
    assert interval.high / interval.low > 3


def test_combining_is_the_weighted_geometric_mean() -> None:
    parts = [LogRatio(math.log(2), 0.0, 9), LogRatio(math.log(8), 0.0, 9)]
    assert combine(parts, [1, 1]).interval().value == pytest.approx(4)
    assert combine(parts, [3, 1]).interval().value == pytest.approx(2 ** (6 / 4))
    assert combine(parts, [10, 10]).interval().value == pytest.approx(4)


def test_combining_one_part_changes_nothing() -> None:
    part = LogRatio(0.3, 0.02, 11)
    combined = combine([part], [5.0])
    assert combined.mean == pytest.approx(part.mean)
    assert combined.error == pytest.approx(part.error)
    assert combined.freedom == pytest.approx(part.freedom)


def test_errors_of_independent_parts_add_in_quadrature() -> None:
    parts = [LogRatio(0.0, 0.03, 9), LogRatio(0.0, 0.04, 9)]
    assert combine(parts, [1, 1]).error == pytest.approx(0.05 / 2)


def test_combining_keeps_a_freedom_between_the_smallest_and_the_sum() -> None:
    parts = [LogRatio(0.0, 0.03, 4), LogRatio(0.0, 0.04, 19), LogRatio(0.0, 0.001, 2)]
    assert 2 <= combine(parts, [1, 2, 1]).freedom <= 25


def test_the_combined_interval_covers_the_truth_about_95_times_in_100() -> None:
    rng = numpy.random.default_rng(11)
    truths, weights = (0.8, 1.5, 3.0), (1.0, 2.0, 1.0)
    truth = math.exp(
        sum(w * math.log(t) for w, t in zip(weights, truths, strict=True)) / sum(weights)
    )
    covered = 0
    for _ in range(1000):
        parts = [estimate(noisy_log_ratios(rng, 12, t)) for t in truths]
        interval = combine(parts, weights).interval()
        covered += interval.low <= truth <= interval.high
    assert 0.925 <= covered / 1000 <= 0.985


def test_distribution_names_the_median_and_the_tail() -> None:
    found = distribution([1e-3] * 99 + [5e-3])
    assert found.p50 == pytest.approx(1e-3)
    assert 1e-3 < found.p99 < 5e-3


@given(st.floats(0, 10), st.lists(st.floats(0, 1e6), max_size=4))
def test_a_fifth_of_the_rounds_cannot_spoil_a_sum(usual: float, odd: list[float]) -> None:
    """Of twenty, four may be anything larger; the sum says what twenty usual ones would be."""
    values = [usual] * (20 - len(odd)) + [usual + extra for extra in odd]
    assert usual_sum(values) == pytest.approx(20 * usual)


@given(st.lists(st.floats(0, 10), min_size=2, max_size=30))
def test_a_usual_sum_is_no_larger_than_the_sum(values: list[float]) -> None:
    assert min(values) * len(values) - 1e-9 <= usual_sum(values) <= sum(values) + 1e-9


def test_one_alone_is_usual() -> None:
    assert usual_sum([3.0]) == 3.0
