"""What a step is worth: gated on the verdict, measured against the parent."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.evaluation.engines.made_up import made_up, made_up_beside
from kernel_smith.records import (
    Beside,
    Candidate,
    Evaluation,
    Interval,
    Reason,
    RewardRule,
    Task,
    reward_of,
)

TASK = Task(name="t", source="class Model: pass")
CHILD, PARENT = Candidate(source="child"), Candidate(source="parent")


def beside(child: float | Reason, parent: float | Reason) -> Evaluation:
    return made_up_beside(made_up(TASK, CHILD, child), made_up(TASK, PARENT, parent))


def test_the_linear_reward_is_the_gain_over_the_parent_not_over_the_reference() -> None:
    reward = reward_of(beside(3.0, 2.0), RewardRule(), has_parent=True)
    assert reward.gain is not None and reward.gain.value == pytest.approx(1.5)
    assert reward.value == reward.gain.low


@pytest.mark.parametrize("gain", [(1.3, 0.9, 1.8), (0.8, 0.6, 1.1), (1.0, 1.0, 1.0)])
@pytest.mark.parametrize(("scale", "worth"), [("linear", 1.0), ("log2", 0.0)])
def test_noise_is_worth_as_much_as_no_change(
    gain: tuple[float, float, float], scale: str, worth: float
) -> None:
    interval = Interval(**dict(zip(("value", "low", "high"), gain, strict=True)))
    noisy = made_up(TASK, CHILD, 1.0).model_copy(
        update={"beside": Beside(candidate_hash=PARENT.content_hash, gain=interval)}
    )
    rule = RewardRule.model_validate({"scale": scale, "low": -5})
    assert reward_of(noisy, rule, has_parent=True).value == worth


def test_the_logarithm_tells_slower_from_faster_by_its_sign() -> None:
    rule = RewardRule(scale="log2", low=-2, high=2, failed=-2)
    values = [
        reward_of(beside(child, 2.0), rule, has_parent=True).value
        for child in (4.0, 2.0, 1.0, 100.0, 0.01, Reason.WRONG_VALUES)
    ]
    certain = math.log2(0.99 * 2)
    assert values == pytest.approx([certain, 0, math.log2(1.01 / 2), 2, -2, -2])


@pytest.mark.parametrize(
    "reason",
    [Reason.COMPILER_REJECTED, Reason.WRONG_VALUES, Reason.DECOY_KERNEL, Reason.CALL_TIMEOUT],
)
def test_what_is_not_ok_gets_what_a_failure_gets(reason: Reason) -> None:
    reward = reward_of(made_up(TASK, CHILD, reason), RewardRule(failed=-1), has_parent=True)
    assert (reward.value, reward.reason, reward.gain) == (-1, reason, None)


def test_a_noisy_machine_is_not_held_against_the_child() -> None:
    reward = reward_of(made_up(TASK, CHILD, Reason.TOO_NOISY), RewardRule(), has_parent=True)
    assert (reward.value, reward.reason) == (None, Reason.TOO_NOISY)


def test_a_first_step_is_measured_against_the_reference() -> None:
    reward = reward_of(made_up(TASK, CHILD, 2.5), RewardRule(), has_parent=False)
    assert reward.value == pytest.approx(0.99 * 2.5)


def test_nobody_knows_the_reward_where_the_parent_could_not_be_timed() -> None:
    failed = reward_of(beside(3.0, Reason.CRASHED), RewardRule(), has_parent=True)
    assert failed.value is None
    assert "crashed" in failed.message
    alone = reward_of(made_up(TASK, CHILD, 3.0), RewardRule(), has_parent=True)
    assert alone.value is None
    assert "not timed beside" in alone.message


@given(
    gain=st.floats(1e-6, 1e6),
    low=st.floats(-20, 0),
    high=st.floats(0, 20),
    scale=st.sampled_from(["linear", "log2"]),
)
def test_no_gain_is_worth_more_or_less_than_the_rule_says(
    gain: float, low: float, high: float, scale: str
) -> None:
    rule = RewardRule.model_validate({"scale": scale, "low": low, "high": high})
    interval = Interval(value=gain, low=gain, high=gain)
    evaluation = made_up(TASK, CHILD, 1.0).model_copy(
        update={"beside": Beside(candidate_hash=PARENT.content_hash, gain=interval)}
    )
    value = reward_of(evaluation, rule, has_parent=True).value
    assert value is not None and low <= value <= high
    if low < (math.log2(gain) if scale == "log2" else gain) < high:
        assert value == (math.log2(gain) if scale == "log2" else gain)
