"""Who leads a race, who drops out of it, and what is said of the others."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.evaluation.judge.sweeping.race import Race

NOISE = 0.02


def raced(speeds: dict[str, float], rounds: int = 8, noise: float = NOISE, seed: int = 0) -> Race:
    """A race on two workloads in which every program has a true time and some noise."""
    dice = random.Random(seed)
    race = Race("", {"small": 1.0, "large": 3.0})
    for workload in ("small", "large"):
        for _ in range(rounds):
            times = {name: dice.lognormvariate(0, noise) / speed for name, speed in speeds.items()}
            race.note(workload, times)
    return race


def test_a_gain_is_the_parents_time_over_the_variants() -> None:
    race = raced({"": 1.0, "fast": 2.0, "slow": 0.5})
    fast, slow = race.gain("fast"), race.gain("slow")
    assert fast is not None and fast.low < 2.0 < fast.high and fast.low > 1.8
    assert slow is not None and slow.low < 0.5 < slow.high and slow.high < 0.6


def test_who_is_behind_beyond_doubt_drops_out() -> None:
    race = raced({"": 1.0, "a": 1.5, "b": 1.499, "c": 1.2, "d": 0.9})
    assert race.still_running(["a", "b", "c", "d"]) == ["a", "b"]


def test_noise_throws_nobody_out_who_is_as_fast() -> None:
    race = raced({"": 1.0, "a": 1.5, "b": 1.4}, noise=0.5)
    assert race.still_running(["a", "b"]) == ["a", "b"]


def test_who_is_known_well_enough_or_slower_need_not_be_timed_again() -> None:
    quiet = raced({"": 1.0, "a": 1.5, "b": 1.01, "c": 0.7}, rounds=20, noise=0.001)
    assert quiet.unsettled(["a", "b", "c"], 0.02) == []
    assert quiet.unsettled(["a", "b", "c"], 0.001) == ["a", "b"]  # not the slower one
    assert quiet.unsettled(["b"], 0.004) == ["b"] and quiet.unsettled(["b"], 0.01) == []
    noisy = raced({"": 1.0, "a": 1.5, "b": 1.01, "c": 0.3}, noise=0.2)
    assert noisy.unsettled(["a", "b", "c", "late"], 0.02) == ["a", "b", "late"]


def test_a_gain_is_never_surer_than_two_processes_agree() -> None:
    exact = raced({"": 1.0, "a": 1.002}, rounds=200, noise=1e-9)
    gain = exact.gain("a")
    assert gain is not None and gain.low < 1 < gain.high
    small = exact.gain_on("small", "a")
    assert small is not None and gain.half_width > 0.005
    assert small.half_width == pytest.approx(gain.half_width), "the same two with all workloads"


def test_workloads_count_by_their_weight() -> None:
    race = Race("", {"small": 1.0, "large": 3.0})
    for _ in range(4):
        race.note("small", {"": 1.0, "a": 1 / 16})
        race.note("large", {"": 1.0, "a": 2.0})
    gain = race.gain("a")
    assert gain is not None and abs(gain.value - (16.0 * 0.5**3) ** 0.25) < 1e-9


def test_nothing_is_said_of_who_missed_a_workload() -> None:
    race = Race("", {"small": 1.0, "large": 1.0})
    for _ in range(4):
        race.note("small", {"": 1.0, "late": 1.0})
        race.note("large", {"": 1.0})
    assert race.gain("late") is None
    assert race.still_running(["late"]) == []


@given(
    speeds=st.lists(st.floats(0.1, 10.0), min_size=1, max_size=12),
    noise=st.floats(0.0, 1.0),
    seed=st.integers(0, 1000),
)
def test_somebody_is_always_left_and_the_leader_among_them(
    speeds: list[float], noise: float, seed: int
) -> None:
    named = {str(number): speed for number, speed in enumerate(speeds)}
    race = raced({"": 1.0} | named, rounds=4, noise=noise, seed=seed)
    left = race.still_running(list(named))
    gains = {name: race.gain(name) for name in named}
    best = max(gain.value for gain in gains.values() if gain is not None)
    assert left and any(gains[name].value == best for name in left)


def test_a_gain_on_one_workload_is_told_apart_from_the_whole() -> None:
    race = Race("", {"small": 1.0, "large": 1.0})
    for _ in range(4):
        race.note("small", {"": 1.0, "a": 0.5})
        race.note("large", {"": 1.0, "a": 4.0})
    small, large = race.gain_on("small", "a"), race.gain_on("large", "a")
    assert small is not None and abs(small.value - 2.0) < 1e-9
    assert large is not None and abs(large.value - 0.25) < 1e-9
    assert race.gain_on("small", "late") is None
