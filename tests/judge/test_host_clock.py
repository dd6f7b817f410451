"""How long batches are, and when measuring stops. The processes are stand-ins with known speeds."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any, cast

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.evaluation.judge.inputs.reference import InputSet
from kernel_smith.evaluation.judge.platform.batch import Batch, Windows
from kernel_smith.evaluation.judge.platform.participant import Participant
from kernel_smith.evaluation.judge.processes.child import ChildFailed
from kernel_smith.evaluation.judge.timing import host_clock
from kernel_smith.evaluation.judge.timing.host_clock import (
    Measurement,
    Samples,
    batch_length,
    capacity_for,
    measure,
)
from kernel_smith.evaluation.judge.timing.rival import RIVAL, RivalFailed
from kernel_smith.records import Sampling

pytestmark = pytest.mark.timing

durations = st.floats(1e-7, 100)
OVERHEAD = 1e-4


class Counter:
    """A sampler that saw one thing in each batch."""

    def __init__(self, pointer: int) -> None:
        self.pointer = pointer
        self.batches = self.drained = 0

    def start(self) -> None: ...

    def stop(self) -> None:
        self.batches += 1

    def drain(self) -> list[int]:
        new, self.drained = self.batches - self.drained, self.batches
        return [self.pointer] * new


class Pretender:
    """A participant whose calls take `seconds`, with noise, without anybody waiting for it."""

    def __init__(self, name: str, seconds: float, noise: float = 0.0, outside: float = 0.0) -> None:
        self.name = name
        self.outside = outside
        self.seconds = seconds
        self.noise = noise
        self.seen: list[str] = []
        self.child = self
        self.still = False
        self.sampler: Counter | None = None
        self._bound: list[InputSet] = []
        self._rng = numpy.random.default_rng(len(name))

    def bind(self, sets: list[InputSet]) -> None:
        self._bound = list(sets)

    def unbind(self) -> None: ...

    def restless_seconds(self) -> float:
        return 0.0

    @contextlib.contextmanager
    def standing_still(self) -> Iterator[None]:
        self.still = True
        yield
        self.still = False

    def run(self, calls: int | None = None, watch: Any = None) -> Batch:
        number = len(self._bound) if calls is None else calls
        self.seen += [inputs.label for inputs in self._bound[:number]]
        wall = OVERHEAD + number * self.seconds * math.exp(self._rng.normal(0, self.noise))
        windows = Windows(run_wall=wall, run_cpu=wall, service_cpu=self.outside, idle_cpu=0)
        return Batch(number, windows, None, [], self.seconds)


def numbered_sets() -> Iterator[InputSet]:
    return (InputSet([], [torch.zeros(0)], str(number)) for number in count())


def run_clock(
    candidate: Pretender,
    *baselines: Pretender,
    length: int = 8,
    watched: bool = False,
    settled: Callable[[Measurement], bool] = lambda _: True,
    **changes: Any,
) -> tuple[Measurement, list[list[str]]]:
    verified: list[list[str]] = []
    sampling = Sampling(**({"target": 0.01, "max_seconds": 60} | changes))
    measurement = measure(
        cast(Participant, candidate),
        [cast(Participant, baseline) for baseline in baselines],
        numbered_sets(),
        length,
        sampling,
        lambda sets, batch: verified.append([inputs.label for inputs in sets]),
        watched=watched,
        settled=settled,
    )
    return measurement, verified


# ---------------------------------------------------------------- lengths


@given(durations, durations, st.integers(1, 512))
def test_batches_fit_the_arenas_and_have_a_call(slow: float, fast: float, capacity: int) -> None:
    assert 1 <= batch_length(slow, fast, capacity) <= capacity


@given(durations, durations, st.integers(1, 512))
def test_batches_are_no_longer_than_a_tenth_of_a_second_unless_one_call_is(
    reference: float, candidate: float, capacity: int
) -> None:
    length = batch_length(reference, candidate, capacity)
    assert length == 1 or length * max(reference, candidate) <= 0.1 * (1 + 1e-9)


@given(durations, durations)
def test_batches_are_long_enough_to_be_timed_where_that_is_affordable(
    reference: float, candidate: float
) -> None:
    length = batch_length(reference, candidate, 10**9)
    affordable = (length + 1) * max(reference, candidate) <= 0.1
    if affordable:
        assert length * reference >= 2e-3 * (1 - 1e-9)
        assert length * candidate >= 5e-4 * (1 - 1e-9)


@given(st.integers(0, 2**40), st.integers(1, 2**30))
def test_capacity_stays_within_the_budget(size: int, budget: int) -> None:
    capacity = capacity_for(size, budget)
    assert capacity >= 1
    assert capacity == 1 or capacity * size <= budget
    assert capacity <= 512


# ---------------------------------------------------------------- measuring


def test_the_cost_of_asking_is_subtracted_for_everyone() -> None:
    measurement, _ = run_clock(Pretender("candidate", 1e-4), Pretender("eager", 3e-4))
    assert measurement.samples["candidate"].seconds == pytest.approx([1e-4] * measurement.rounds)
    assert measurement.samples["eager"].seconds == pytest.approx([3e-4] * measurement.rounds)
    assert measurement.log_ratio("eager", "candidate").interval().value == pytest.approx(3)


@pytest.mark.parametrize(("slow", "doubtful"), [(0, False), (1, False), (2, False), (5, True)])
def test_a_few_slow_empty_batches_leave_no_doubt(slow: int, doubtful: bool) -> None:
    """They are interrupted now and then; only a machine that is busy most of the time is not known
    well enough to say what asking costs."""

    class Interrupted(Pretender):
        def run(self, calls: int | None = None, watch: Any = None) -> Batch:
            nonlocal slow
            batch = super().run(calls)
            if calls == 0 and slow > 0:
                slow -= 1
                windows = replace(batch.windows, run_wall=batch.windows.run_wall + 0.02)
                return replace(batch, windows=windows)
            return batch

    measurement, _ = run_clock(Pretender("candidate", 1e-6), Interrupted("eager", 3e-6))
    assert (measurement.doubt > 1e-3) == doubtful
    assert measurement.samples["candidate"].seconds[0] == pytest.approx(1e-6)


class BusyAtFirst(Pretender):
    """Its first empty batches are all slow."""

    empty = 0

    def run(self, calls: int | None = None, watch: Any = None) -> Batch:
        batch = super().run(calls)
        self.empty += calls == 0
        if calls == 0 and self.empty <= 9:
            windows = replace(batch.windows, run_wall=batch.windows.run_wall + 3e-4)
            return replace(batch, windows=windows)
        return batch


def test_a_moment_in_which_all_empty_batches_were_slow_flatters_nobody() -> None:
    """They are measured in another moment as well, and the shorter ones are believed."""

    eager = BusyAtFirst("eager", 3e-4)
    measurement, _ = run_clock(Pretender("candidate", 1e-4), eager)
    assert eager.empty == 18
    assert measurement.log_ratio("eager", "candidate").interval().value == pytest.approx(3)
    assert measurement.samples["candidate"].seconds == pytest.approx([1e-4] * measurement.rounds)


def test_where_a_batch_takes_far_longer_asking_is_not_measured_again() -> None:
    eager = BusyAtFirst("eager", 1e-1)
    run_clock(Pretender("candidate", 1e-1), eager, length=1)
    assert eager.empty == 9


def test_everybody_else_stands_still_while_the_cost_of_asking_is_measured() -> None:
    class Attentive(Pretender):
        def run(self, calls: int | None = None, watch: Any = None) -> Batch:
            asked.append((calls == 0, candidate.still, rival.still, self.still))
            return super().run(calls)

    asked: list[tuple[bool, ...]] = []
    candidate, rival = Pretender("candidate", 1e-4), Pretender(RIVAL, 1e-4)
    run_clock(candidate, Attentive("eager", 3e-4), rival)
    assert set(asked) == {(True, True, True, False), (False, False, False, False)}


def test_no_process_sees_an_input_set_twice() -> None:
    candidate, eager = Pretender("candidate", 1e-4, 0.1), Pretender("eager", 3e-4, 0.1)
    run_clock(candidate, eager, max_rounds=40)
    for participant in (candidate, eager):
        assert len(set(participant.seen)) == len(participant.seen)


def test_everyone_works_on_the_same_sets_and_every_batch_is_verified() -> None:
    candidate, eager = Pretender("candidate", 1e-4, 0.1), Pretender("eager", 3e-4, 0.1)
    compiled = Pretender("compile", 2e-4, 0.1)
    measurement, verified = run_clock(candidate, eager, compiled, max_rounds=20)
    assert candidate.seen == [label for batch in verified for label in batch]
    assert eager.seen == candidate.seen
    assert compiled.seen == candidate.seen
    assert measurement.calls == len(candidate.seen)


def test_batches_have_different_lengths() -> None:
    """Otherwise a candidate could count calls to know where a batch ends."""
    candidate, eager = Pretender("candidate", 1e-4, 0.5), Pretender("eager", 3e-4, 0.5)
    _, verified = run_clock(candidate, eager, length=8, target=1e-9, max_rounds=60)
    assert {len(batch) for batch in verified} == {4, 8}


def test_measuring_stops_as_soon_as_the_interval_is_tight() -> None:
    steady, _ = run_clock(Pretender("candidate", 1e-4), Pretender("eager", 3e-4), max_rounds=200)
    assert steady.rounds == 10
    noisy, _ = run_clock(
        Pretender("candidate", 1e-4, 0.05), Pretender("eager", 1e-4, 0.05), max_rounds=2000
    )
    assert 10 < noisy.rounds < 2000
    assert noisy.log_ratio("eager", "candidate").interval().half_width <= 0.01


def test_a_large_difference_is_measured_less_finely_yet_never_to_instability() -> None:
    def against(seconds: float, **changes: Any) -> Measurement:
        candidate, eager = Pretender("candidate", 1e-4, 0.08), Pretender("eager", seconds, 0.08)
        return run_clock(candidate, eager, max_rounds=2000, **changes)[0]

    equals, threefold, extreme = against(1e-4), against(3e-4), against(1.0)
    assert extreme.rounds <= threefold.rounds < equals.rounds
    width = threefold.log_ratio("eager", "candidate").interval().half_width
    assert 0.01 < width <= 0.02 * math.log(3.2)
    assert extreme.log_ratio("eager", "candidate").interval().half_width <= 0.025
    exact = against(3e-4, unstable_above=0.01)  # half of it is less than the target
    assert exact.log_ratio("eager", "candidate").interval().half_width <= 0.01


def test_measuring_stops_when_rounds_or_time_are_spent() -> None:
    def hopeless() -> tuple[Pretender, Pretender]:
        return Pretender("candidate", 1e-4, 1.0), Pretender("eager", 3e-4, 1.0)

    spent, _ = run_clock(*hopeless(), min_rounds=3, max_rounds=17)
    assert spent.rounds == 17
    late, _ = run_clock(*hopeless(), min_rounds=5, max_rounds=10_000, max_seconds=1e-9)
    assert late.rounds == 5


def test_a_busy_machine_is_no_reason_for_fewer_rounds_unless_calls_are_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def late(length: int) -> int:
        candidate, eager = Pretender("candidate", 1e-4, 1.0), Pretender("eager", 3e-4, 1.0)
        return run_clock(candidate, eager, length=length, max_seconds=1e-9)[0].rounds

    assert late(length=8) == Sampling().min_rounds
    assert late(length=1) == host_clock.FEWEST_ROUNDS < Sampling().min_rounds
    monkeypatch.setattr(host_clock, "_MOST_MORE_SECONDS", 0.0)
    assert late(length=8) == host_clock.FEWEST_ROUNDS


def test_rounds_go_on_until_all_is_known_that_they_are_to_tell() -> None:
    def steady() -> tuple[Pretender, Pretender]:
        return Pretender("candidate", 1e-4), Pretender("eager", 3e-4)

    longer, _ = run_clock(*steady(), settled=lambda m: m.rounds >= 31)
    assert longer.rounds >= 31
    beyond, _ = run_clock(*steady(), max_rounds=17, settled=lambda m: m.rounds >= 31)
    assert beyond.rounds == 31
    assert len(beyond.samples["candidate"].seconds) == 31


def test_what_stays_unknown_does_not_keep_rounds_going_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(measurement: Measurement) -> bool:
        return False

    many, _ = run_clock(
        Pretender("candidate", 1e-4), Pretender("eager", 3e-4), max_rounds=17, settled=never
    )
    assert many.rounds == 17 + host_clock._MOST_MORE_ROUNDS
    monkeypatch.setattr(host_clock, "_MOST_MORE_SECONDS", 0.0)
    late, _ = run_clock(
        Pretender("candidate", 1e-4), Pretender("eager", 3e-4), max_seconds=1e-9, settled=never
    )
    assert late.rounds == 5


def test_the_loosest_of_several_baselines_decides_when_to_stop() -> None:
    wild = Pretender("wild", 3e-4, 1.0)
    measurement, _ = run_clock(
        Pretender("candidate", 1e-4), Pretender("eager", 3e-4), wild, max_rounds=30
    )
    assert measurement.rounds == 30


def test_a_batch_that_is_shorter_than_the_asking_has_a_positive_time() -> None:
    measurement, _ = run_clock(Pretender("candidate", 0.0), Pretender("eager", 3e-4))
    assert all(seconds > 0 for seconds in measurement.samples["candidate"].seconds)
    assert measurement.log_ratio("eager", "candidate").interval().value > 1


def test_the_interval_keeps_its_promise_although_measuring_stops_early() -> None:
    covered = 0
    for seed in range(120):
        candidate, eager = Pretender("candidate", 1e-4, 0.02), Pretender("eager", 1.5e-4, 0.02)
        candidate._rng = numpy.random.default_rng(2 * seed)
        eager._rng = numpy.random.default_rng(2 * seed + 1)
        interval = run_clock(candidate, eager)[0].log_ratio("eager", "candidate").interval()
        covered += interval.low <= 1.5 <= interval.high
    assert covered >= 0.85 * 120


def test_a_rival_takes_part_in_every_round_and_is_charged_for_hidden_work_as_well() -> None:
    candidate, eager = Pretender("candidate", 1e-4), Pretender("eager", 3e-4)
    rival = Pretender(RIVAL, 2e-4, outside=1e-4)
    measurement, _ = run_clock(candidate, eager, rival)
    assert rival.seen == candidate.seen
    gain = measurement.log_ratio(RIVAL, "candidate").interval().value
    rounds = measurement.samples[RIVAL]
    charged = 1e-4 * measurement.rounds / rounds.calls
    assert gain == pytest.approx((2e-4 + charged) / 1e-4)


def test_the_failure_of_a_rival_is_its_own() -> None:
    class Dying(Pretender):
        def run(self, calls: int | None = None, watch: Any = None) -> Batch:
            raise ChildFailed("died", "gone")

    with pytest.raises(RivalFailed, match="crashed: gone"):
        run_clock(Pretender("candidate", 1e-4), Pretender("eager", 3e-4), Dying(RIVAL, 1e-4))
    with pytest.raises(ChildFailed):
        run_clock(Dying("candidate", 1e-4), Pretender("eager", 3e-4))


@given(durations, durations, durations)
def test_batches_are_short_enough_for_a_slow_rival(
    reference: float, candidate: float, rival: float
) -> None:
    length = batch_length(reference, candidate, 10**9, rival_seconds=rival)
    assert length == 1 or length * rival <= 0.1 * (1 + 1e-9)


class Uneven(Pretender):
    """Some of its batches cost more: in processor time, or because others had the core."""

    def __init__(self, *of: Any, every: int = 6, extra: float, worked: bool = True) -> None:
        super().__init__(*of)
        self.every, self.extra, self.worked = every, extra, worked
        self.batches = 0

    def run(self, calls: int | None = None, watch: Any = None) -> Batch:
        batch = super().run(calls)
        self.batches += 1
        if self.batches % self.every:
            return batch
        wall, cpu = batch.windows.run_wall + self.extra, batch.windows.run_cpu
        windows = Windows(wall, cpu + self.extra * self.worked, 0.0, 0.0)
        return Batch(batch.calls, windows, None, [], self.seconds)


def speedup(candidate: Pretender, eager: Pretender) -> float:
    measurement, _ = run_clock(candidate, eager, min_rounds=60, max_rounds=60)
    return measurement.log_ratio("eager", "candidate").interval().value


def test_batches_that_do_the_work_of_others_count_for_all_of_them() -> None:
    """In wall time they are left out; the processor's books show them."""
    honest = speedup(Pretender("candidate", 5e-4), Pretender("eager", 1e-3))
    paying = speedup(Uneven("candidate", 5e-4, extra=0.1), Pretender("eager", 1e-3))
    assert honest == pytest.approx(2)
    assert paying < 0.5
    once = speedup(Uneven("candidate", 5e-4, every=40, extra=1.0), Pretender("eager", 1e-3))
    assert once < 0.5


def test_batches_that_were_disturbed_do_not_count() -> None:
    disturbed = Uneven("candidate", 5e-4, extra=0.1, worked=False)
    assert speedup(disturbed, Pretender("eager", 1e-3)) == pytest.approx(2)


def test_what_befalls_the_reference_as_well_is_nobodys_work() -> None:
    candidate, eager = (
        Uneven(n, s, extra=2 * s) for n, s in (("candidate", 5e-4), ("eager", 1e-3))
    )
    assert speedup(candidate, eager) == pytest.approx(2, rel=0.02)


def test_a_pause_of_a_moment_is_not_charged() -> None:
    paused = Uneven("candidate", 5e-4, every=40, extra=0.002)
    assert speedup(paused, Pretender("eager", 1e-3)) == pytest.approx(2)


@pytest.mark.parametrize("watched", [True, False])
def test_who_is_watched_is_watched_like_everybody_else(watched: bool) -> None:
    """In every round, warm-up included: what differs could be told apart."""

    class Watched(Pretender):
        def run(self, calls: int | None = None, watch: Any = None) -> Batch:
            if watch is not None:
                watch.start()
                watch.stop()
            return super().run(calls)

    everyone = [Watched("candidate", 1e-4), Watched("eager", 3e-4)]
    for number, participant in enumerate(everyone, 1):
        participant.sampler = Counter(number)
    measurement, _ = run_clock(*everyone, max_rounds=12, watched=watched)
    batches = [cast(Counter, participant.sampler).batches for participant in everyone]
    assert batches[0] == batches[1]
    assert batches[0] >= measurement.rounds if watched else batches[0] == 0
    assert measurement.pointers == [1] * batches[0]


def test_results_in_memory_that_was_made_ready_are_charged_what_filling_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host_clock, "fill_bytes_per_second", lambda: 1e9)

    def samples(fresh: int) -> Samples:
        made = Samples()
        for _ in range(10):
            windows = Windows(1e-3, 1e-3, 0.0, 0.0, fresh_bytes=fresh)
            made.add(Batch(4, windows, None, [], 1e-3), 0.0)
        return made

    for fresh, of_reference in [(0, 0), (100, 100), (0, 100)]:
        candidate = samples(fresh)
        host_clock._charge_fresh_memory(candidate, samples(of_reference))
        assert candidate.seconds == samples(0).seconds
    candidate = samples(400_000)
    host_clock._charge_fresh_memory(candidate, samples(0))
    more = [mine - usual for mine, usual in zip(candidate.seconds, samples(0).seconds, strict=True)]
    assert more == pytest.approx([1e-4] * 10), "400 kB for four calls"
