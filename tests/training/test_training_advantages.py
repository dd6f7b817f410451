"""Leave-one-out advantages, against values worked out by hand and against their definition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.training.advantages import leave_one_out


def test_each_reward_is_compared_with_the_mean_of_the_others() -> None:
    # The mean is 2, and 3 / 2 of the distance from it: 1 - (2 + 3) / 2, 2 - (1 + 3) / 2, ...
    assert leave_one_out([1.0, 2.0, 3.0], 3) == [-1.5, 0.0, 1.5]


def test_groups_do_not_mix() -> None:
    assert leave_one_out([0.0, 2.0, 10.0, 10.0], 2) == [-2.0, 2.0, 0.0, 0.0]


def test_rewards_that_are_not_known_count_nowhere() -> None:
    assert leave_one_out([1.0, None, 3.0], 3) == [-2.0, 0.0, 2.0]
    assert leave_one_out([5.0, None], 2) == [0.0, 0.0]
    assert leave_one_out([None, None], 2) == [0.0, 0.0]


def test_rewards_that_are_no_whole_groups_are_refused() -> None:
    with pytest.raises(ValueError, match="3 rewards are not groups of 2"):
        leave_one_out([1.0, 2.0, 3.0], 2)


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=12))
def test_the_formula_is_the_definition(rewards: list[float]) -> None:
    count = len(rewards)
    total = sum(rewards)
    expected = [reward - (total - reward) / (count - 1) for reward in rewards]
    assert leave_one_out(rewards, count) == pytest.approx(expected, abs=1e-9)
