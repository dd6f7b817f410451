"""What timing showed: per workload and baseline, together, and whether it is of use."""

from __future__ import annotations

import math

import pytest

from kernel_smith.evaluation.judge.processes.pool import CoreSet
from kernel_smith.evaluation.judge.timing.host_clock import Measurement, Samples
from kernel_smith.evaluation.judge.timing.outcome import Against, Outcome, side_by_side, summarise
from kernel_smith.evaluation.judge.timing.statistics import LogRatio
from kernel_smith.records import Distribution, Options, Reason, Sampling, Task, Workload

PLACE = CoreSet(timed=frozenset({3, 1}), judge=frozenset({0}))
BOTH = Options(baselines=("eager", "compile"))
NOISE = (0.99, 1.0, 1.01, 1.0, 0.995, 1.005)


def measured(**seconds: float) -> Measurement:
    """Participants of these speeds, with a little noise that is not shared."""
    samples = {
        name: Samples(
            seconds=[value * NOISE[(i + k) % len(NOISE)] for i in range(12)],
            inner=[value / 2] * 12,
        )
        for k, (name, value) in enumerate(seconds.items())
    }
    return Measurement(samples, rounds=12, calls=96)


@pytest.fixture
def task(small_task: Task) -> Task:
    """Of two workloads, the second of which weighs three times as much."""
    workloads = (Workload(name="light"), Workload(name="heavy", weight=3.0))
    return small_task.model_copy(update={"workloads": workloads})


@pytest.fixture
def outcomes() -> dict[str, Outcome]:
    light = measured(candidate=1e-3, eager=2e-3, compile=1e-3)
    heavy = measured(candidate=1e-3, eager=4e-3, compile=5e-4)
    return {
        name: side_by_side(measurement, "candidate", ["eager", "compile"])
        for name, measurement in (("light", light), ("heavy", heavy))
    }


def test_side_by_side_every_baseline_is_compared_in_the_same_rounds() -> None:
    outcome = side_by_side(
        measured(candidate=1e-3, eager=2e-3, compile=5e-4), "candidate", ["eager"]
    )
    assert list(outcome.against) == ["eager"]
    eager = outcome.against["eager"]
    assert math.exp(eager.ratio.mean) == pytest.approx(2, rel=0.01)
    assert eager.ratio.error > 0
    assert eager.seconds.p50 == pytest.approx(2e-3, rel=0.01)
    assert eager.plain is None
    assert outcome.plain_p50 is None


def test_the_whole_is_the_weighted_geometric_mean(task: Task, outcomes: dict[str, Outcome]) -> None:
    timing, reason = summarise(task, outcomes, BOTH, PLACE)
    assert reason is None
    assert [s.baseline for s in timing.speedups] == ["eager", "compile"]
    eager, compiled = (s.speedup for s in timing.speedups)
    assert eager.value == pytest.approx((2 * 4**3) ** (1 / 4), rel=0.01)
    assert compiled.value == pytest.approx((1 * 0.5**3) ** (1 / 4), rel=0.01)
    assert eager.low < eager.value < eager.high
    assert timing.speedup == eager
    assert timing.cores == (1, 3)


def test_each_workload_has_its_own_row(task: Task, outcomes: dict[str, Outcome]) -> None:
    timing, _ = summarise(task, outcomes, BOTH, PLACE)
    light, heavy = timing.workloads
    assert (light.workload, light.weight) == ("light", 1.0)
    assert (heavy.workload, heavy.weight) == ("heavy", 3.0)
    assert (heavy.rounds, heavy.calls, heavy.way) == (12, 96, "plain")
    assert heavy.candidate.p50 == pytest.approx(1e-3, rel=0.01)
    assert heavy.inner_p50 == pytest.approx(5e-4)
    assert [b.baseline for b in heavy.baselines] == ["eager", "compile"]
    assert [b.speedup.value for b in heavy.baselines] == pytest.approx([4, 0.5], rel=0.01)
    assert all(b.plain_speedup is None for b in heavy.baselines)


def test_only_the_baselines_asked_for_are_reported_in_their_order(
    task: Task, outcomes: dict[str, Outcome]
) -> None:
    options = Options(baselines=("compile",))
    timing, _ = summarise(task, outcomes, options, PLACE)
    assert [s.baseline for s in timing.speedups] == ["compile"]
    assert [b.baseline for b in timing.workloads[0].baselines] == ["compile"]


def test_replays_are_reported_with_the_plain_calls_beside_them(small_task: Task) -> None:
    (workload,) = small_task.workloads
    against = Against(
        LogRatio(math.log(3), 0.001, 40),
        Distribution(p50=3e-5, p99=4e-5),
        plain=LogRatio(math.log(1.5), 0.001, 40),
    )
    outcome = Outcome(
        measured(candidate=1e-5), "candidate", {"eager": against}, plain_p50=2e-5, replayed=True
    )
    timing, _ = summarise(small_task, {workload.name: outcome}, Options(), PLACE)
    (row,) = timing.workloads
    assert (row.way, row.plain_p50) == ("replay", 2e-5)
    (baseline,) = row.baselines
    assert baseline.seconds.p99 == 4e-5
    assert baseline.speedup.value == pytest.approx(3)
    assert baseline.plain_speedup is not None
    assert baseline.plain_speedup.value == pytest.approx(1.5)


def test_two_processes_are_as_lucky_with_many_workloads_as_with_one(small_task: Task) -> None:
    workloads = tuple(Workload(name=str(number)) for number in range(9))
    task = small_task.model_copy(update={"workloads": workloads})
    certain = Against(LogRatio(0.0, 0.0, 1000), Distribution(p50=1, p99=1))
    outcome = Outcome(measured(candidate=1.0), "candidate", {"eager": certain})
    timing, _ = summarise(task, {w.name: outcome for w in workloads}, Options(), PLACE)
    whole, (alone,) = timing.speedup.half_width, timing.workloads[0].baselines
    assert whole == pytest.approx(alone.speedup.half_width)


def test_an_interval_allows_for_what_no_sampling_removes(small_task: Task) -> None:
    (workload,) = small_task.workloads
    certain = Against(LogRatio(0.0, 0.0, 1000), Distribution(p50=1, p99=1), LogRatio(0, 0, 1000))
    outcome = Outcome(measured(candidate=1.0), "candidate", {"eager": certain})
    timing, _ = summarise(small_task, {workload.name: outcome}, Options(), PLACE)
    (baseline,) = timing.workloads[0].baselines
    assert baseline.plain_speedup is not None
    for interval in (timing.speedup, baseline.speedup, baseline.plain_speedup):
        assert 0.008 < interval.half_width < 0.012


@pytest.mark.parametrize(
    ("speedup", "noisy"), [(0.16, False), (0.8, True), (1.0, True), (1.2, True), (3.0, False)]
)
def test_a_wide_interval_is_of_use_where_it_says_who_is_faster(
    small_task: Task, speedup: float, noisy: bool
) -> None:
    (workload,) = small_task.workloads
    against = Against(LogRatio(math.log(speedup), 0.12, 50), Distribution(p50=1, p99=1))
    outcome = Outcome(measured(candidate=1.0), "candidate", {"eager": against})
    timing, reason = summarise(small_task, {workload.name: outcome}, Options(), PLACE)
    assert timing.speedup.half_width > Options().sampling.unstable_above
    assert reason == (Reason.TOO_NOISY if noisy else None)


@pytest.mark.parametrize(("bound", "noisy"), [(0.5, False), (0.05, True)])
def test_too_wide_an_interval_against_any_baseline_is_too_noisy(
    small_task: Task, bound: float, noisy: bool
) -> None:
    (workload,) = small_task.workloads
    seconds = Distribution(p50=1, p99=1)
    against = {
        "eager": Against(LogRatio(0.0, 0.001, 50), seconds),
        "compile": Against(LogRatio(0.0, 0.05, 50), seconds),
    }
    outcome = Outcome(measured(candidate=1.0), "candidate", against)
    sampling = Sampling(unstable_above=bound)
    options = BOTH.model_copy(update={"sampling": sampling})
    _, reason = summarise(small_task, {workload.name: outcome}, options, PLACE)
    assert reason == (Reason.TOO_NOISY if noisy else None)
