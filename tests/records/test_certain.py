"""What of a ratio is certain: never more than was measured, and nothing where it may be noise."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.records import Interval

RATIOS = st.floats(min_value=1e-3, max_value=1e3)
INTERVALS = st.lists(RATIOS, min_size=3, max_size=3).map(
    lambda ends: Interval(low=min(ends), value=sorted(ends)[1], high=max(ends))
)


@pytest.mark.parametrize(
    ("low", "value", "high", "certain"),
    [
        (0.9, 1.3, 1.8, 1.0),
        (0.6, 0.8, 1.1, 1.0),
        (1.0, 1.2, 1.4, 1.0),
        (0.7, 0.9, 1.0, 1.0),
        (1.1, 1.2, 1.4, 1.1),
        (0.5, 0.6, 0.7, 0.7),
    ],
)
def test_the_end_that_is_nearer_to_no_change(
    low: float, value: float, high: float, certain: float
) -> None:
    assert Interval(low=low, value=value, high=high).certain == certain


@given(INTERVALS)
def test_it_lies_between_no_change_and_the_estimate(ratio: Interval) -> None:
    assert ratio.low <= ratio.certain <= ratio.high
    assert min(1.0, ratio.value) <= ratio.certain <= max(1.0, ratio.value)
    assert abs(math.log(ratio.certain)) <= abs(math.log(ratio.value)) or ratio.certain == 1


@given(INTERVALS)
def test_it_is_no_change_exactly_where_nothing_is_decided(ratio: Interval) -> None:
    touches = 1.0 in (ratio.low, ratio.high)
    assert (ratio.certain != 1) == (ratio.decided and not touches)


@given(INTERVALS, INTERVALS)
def test_a_better_interval_is_never_worth_less(one: Interval, other: Interval) -> None:
    better = Interval(
        low=max(one.low, other.low),
        value=max(one.value, other.value),
        high=max(one.high, other.high),
    )
    assert better.certain >= max(one.certain, other.certain)


@given(INTERVALS, st.floats(1, 2), st.floats(1, 2))
def test_more_doubt_is_never_worth_more(ratio: Interval, down: float, up: float) -> None:
    wider = Interval(low=ratio.low / down, value=ratio.value, high=ratio.high * up)
    assert abs(math.log(wider.certain)) <= abs(math.log(ratio.certain))


@given(INTERVALS)
def test_a_loss_is_a_gain_seen_from_the_other_side(ratio: Interval) -> None:
    assert ratio.inverse.certain == pytest.approx(1 / ratio.certain)
    assert ratio.inverse.inverse.value == pytest.approx(ratio.value)


@given(INTERVALS, INTERVALS)
def test_a_quotient_claims_no_more_than_its_parts_allow(one: Interval, other: Interval) -> None:
    quotient = one.over(other)
    assert quotient.low <= quotient.value <= quotient.high
    faster = one.low > other.high
    assert (quotient.certain > 1) <= faster or quotient.certain == pytest.approx(1)


@given(INTERVALS)
def test_no_program_gains_over_itself(ratio: Interval) -> None:
    assert ratio.over(ratio).certain == 1
