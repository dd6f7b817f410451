"""Gains: side by side where they were measured so, through the baseline otherwise, or unknown."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from step_makers import ENVIRONMENT, around, evaluation, program, timing

from kernel_smith.records import (
    BaselineSpeedup,
    Beside,
    Device,
    Distribution,
    Evaluation,
    Reason,
    Stage,
    WorkloadGain,
)
from kernel_smith.records.gains import certain_gain, gain_over, gain_over_reference

CHILD, PARENT = program(1), program(0)
SPEEDUPS = st.floats(min_value=0.01, max_value=100)
DEVICE = Device(
    name="a GPU",
    capability="9.0",
    memory_bytes=1 << 30,
    multiprocessors=100,
    l2_bytes=1 << 20,
    driver="1",
    runtime="12.8",
)


def beside(value: float | None, candidate_hash: str = PARENT.content_hash) -> Beside:
    if value is None:
        return Beside(candidate_hash=candidate_hash, reason=Reason.CRASHED)
    by_workload = (WorkloadGain(workload="wide", gain=around(value)),)
    return Beside(candidate_hash=candidate_hash, gain=around(value), workloads=by_workload)


def test_speedups_over_the_same_baseline_are_divided() -> None:
    child = evaluation(CHILD, {"wide": 3.0, "tall": 2.0})
    parent = evaluation(PARENT, {"wide": 2.0, "tall": 2.0})
    gain = gain_over(child, parent)
    assert gain is not None
    assert not gain.side_by_side
    assert gain.overall.value == pytest.approx(1.25)
    assert [each.workload for each in gain.workloads] == ["wide", "tall"]
    assert [each.gain.value for each in gain.workloads] == pytest.approx([1.5, 1.0])


def test_the_interval_is_as_wide_as_both_together() -> None:
    gain = gain_over(evaluation(CHILD, 2.0), evaluation(PARENT, 1.0))
    assert gain is not None
    assert gain.overall.low == pytest.approx(2 * 0.99 / 1.01)
    assert gain.overall.high == pytest.approx(2 * 1.01 / 0.99)


@given(SPEEDUPS, SPEEDUPS, st.none() | SPEEDUPS, st.booleans())
def test_what_is_certain_of_a_gain_is_the_same_to_all(
    own: float, its: float, together: float | None, elsewhere: bool
) -> None:
    child = evaluation(CHILD, own, beside=None if together is None else beside(together))
    parent = evaluation(PARENT, its, device=DEVICE if elsewhere else None)
    gain = gain_over(child, parent)
    assert certain_gain(child, parent) == (1.0 if gain is None else gain.overall.certain)
    over_reference = gain_over_reference(child)
    assert over_reference is not None
    assert certain_gain(child, None) == over_reference.overall.certain


def test_what_was_measured_side_by_side_is_preferred() -> None:
    child = evaluation(CHILD, 2.0, beside=beside(1.1))
    gain = gain_over(child, evaluation(PARENT, 1.0))
    assert gain is not None
    assert gain.side_by_side
    assert gain.overall == around(1.1)
    assert gain.workloads[0].gain == around(1.1)


@pytest.mark.parametrize("other", [beside(None), beside(1.1, program(7).content_hash)])
def test_a_rival_that_failed_or_is_another_program_says_nothing(other: Beside) -> None:
    gain = gain_over(evaluation(CHILD, 2.0, beside=other), evaluation(PARENT, 1.0))
    assert gain is not None
    assert not gain.side_by_side
    assert gain.overall.value == pytest.approx(2.0)


def test_the_tail_is_that_of_the_least_favourable_workload() -> None:
    own, its = timing({"wide": 2.0, "tall": 2.0}), timing({"wide": 1.0, "tall": 1.0})
    slow = own.workloads[1].model_copy(update={"candidate": Distribution(p50=5e-6, p99=4e-5)})
    own = own.model_copy(update={"workloads": (own.workloads[0], slow)})
    gain = gain_over(evaluation(CHILD, 2.0, timing=own), evaluation(PARENT, 1.0, timing=its))
    assert gain is not None
    assert gain.p99 == pytest.approx(0.5)


COMPILED = timing({"wide": 1.0}).model_copy(
    update={"speedups": (BaselineSpeedup(baseline="compile", speedup=around(1.0)),)}
)


@pytest.mark.parametrize(
    "parent",
    [
        evaluation(PARENT, None),
        evaluation(PARENT, 1.0, stage=Stage.UNSTABLE, reason=Reason.TOO_NOISY),
        evaluation(PARENT, 1.0, timing=None, interpreted=True),
        evaluation(PARENT, {"tall": 1.0}),
        evaluation(PARENT, {"wide": 1.0, "tall": 1.0}),
        evaluation(PARENT, 1.0, task_hash="0" * 64),
        evaluation(PARENT, 1.0, device=DEVICE),
        evaluation(PARENT, 1.0, timing=timing({"wide": 1.0}, way="replay")),
        evaluation(PARENT, 1.0, timing=COMPILED),
        evaluation(PARENT, 1.0, environment=ENVIRONMENT.model_copy(update={"machine": "x86_64"})),
    ],
    ids=[
        "wrong",
        "unstable",
        "interpreted",
        "other-workload",
        "more-workloads",
        "other-task",
        "other-device",
        "other-way-of-timing",
        "other-baseline",
        "other-machine",
    ],
)
def test_what_cannot_be_compared_has_no_gain(parent: Evaluation) -> None:
    child = evaluation(CHILD, 2.0)
    assert gain_over(child, evaluation(PARENT, 1.0)) is not None
    assert gain_over(child, parent) is None
    assert gain_over(parent, child) is None


def test_side_by_side_needs_no_baseline_in_common_but_knows_no_tail_then() -> None:
    child = evaluation(CHILD, 2.0, beside=beside(1.1))
    gain = gain_over(child, evaluation(PARENT, 1.0, timing=COMPILED))
    assert gain is not None
    assert gain.side_by_side
    assert gain.p99 is None


@pytest.mark.parametrize(
    ("changes", "together"),
    [({}, True), ({"device": DEVICE}, True), ({"device": DEVICE, "timing": COMPILED}, False)],
)
def test_a_first_step_gains_over_the_reference(changes: dict[str, Any], together: bool) -> None:
    made = evaluation(CHILD, 1.0, **changes)
    gain = gain_over_reference(made)
    assert gain is not None
    assert made.timing is not None
    assert gain.overall == made.timing.speedup
    assert gain.p99 == pytest.approx(1.5)
    assert gain.side_by_side is together


def test_a_failed_first_step_has_no_gain() -> None:
    assert gain_over_reference(evaluation(CHILD, None)) is None


@given(SPEEDUPS, SPEEDUPS)
def test_there_and_back_again_gains_nothing(one: float, other: float) -> None:
    left, right = evaluation(CHILD, one), evaluation(PARENT, other)
    there, back = gain_over(left, right), gain_over(right, left)
    assert there is not None and back is not None
    assert there.overall.value * back.overall.value == pytest.approx(1)
    assert there.overall.low * back.overall.high == pytest.approx(1)
    assert there.overall.low < there.overall.value < there.overall.high
