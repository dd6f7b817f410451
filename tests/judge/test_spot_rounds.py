"""Rounds that are looked into: which ones, who takes part, and what they say about the time of a
call. The processes are stand-ins with known speeds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, cast

import pytest
import torch

from kernel_smith.evaluation.judge.inputs.reference import InputSet
from kernel_smith.evaluation.judge.platform.batch import Batch, Windows
from kernel_smith.evaluation.judge.platform.participant import Participant
from kernel_smith.evaluation.judge.platform.spot_check import SpotCheck
from kernel_smith.evaluation.judge.rejection import Rejected
from kernel_smith.evaluation.judge.timing.host_clock import Samples
from kernel_smith.evaluation.judge.timing.spot_rounds import SpotRounds, chance_after
from kernel_smith.records import Reason

SECONDS = 1e-3
USUAL = {"candidate": SECONDS, "eager": SECONDS}


class Pretender:
    """Calls take a millisecond of processor time, and so much more when it is stopped."""

    sampler = None

    def __init__(self, name: str, more: float = 0.0, *, too_fast: bool = False) -> None:
        self.name, self.more, self.too_fast = name, more, too_fast
        self.ran: list[tuple[list[str], bool]] = []  # on which sets, and whether it was stopped
        self.late: int | None = None
        self.bound_sets: list[InputSet] = []

    def bind(self, sets: list[InputSet]) -> None:
        self.bound_sets = list(sets)

    def unbind(self) -> None:
        self.bound_sets = []

    def run(self, watch: Any = None) -> Batch:
        return self._batch(stopped=False)

    def run_stopping(self, spot: SpotCheck, watch: Any = None) -> Batch:
        if not self.too_fast:
            self.bound_sets[-1] = spot._draw(self.bound_sets[-1])
            spot.exchanged = 100
        return self._batch(stopped=True)

    def came_late(self, spot: SpotCheck) -> int | None:
        return self.late

    def _batch(self, *, stopped: bool) -> Batch:
        self.ran.append(([inputs.label for inputs in self.bound_sets], stopped))
        calls = len(self.bound_sets)
        cpu = calls * SECONDS * (1 + self.more * stopped)
        return Batch(calls, Windows(cpu, cpu, 0.0, 0.0), None, [], SECONDS)


class Uneven(Pretender):
    """Some of the batches in which it is stopped cost so much more."""

    def __init__(self, name: str, extra: float, *, too_fast: bool = False) -> None:
        super().__init__(name, too_fast=too_fast)
        self.extra, self.stops = extra, 0

    def run_stopping(self, spot: SpotCheck, watch: Any = None) -> Batch:
        self.more = self.extra if self.stops % 3 == 1 else 0.0
        self.stops += 1
        return super().run_stopping(spot, watch)


def numbered_sets() -> Iterator[InputSet]:
    return (InputSet([], [torch.zeros(0)], str(number)) for number in count())


def spots(candidate: Pretender, *baselines: Pretender, length: int = 8) -> SpotRounds:
    def verify(sets: list[InputSet], batch: Batch) -> None:
        assert len(sets) == batch.calls
        assert [inputs.label for inputs in sets] == candidate.ran[-1][0] == baselines[0].ran[-1][0]

    return SpotRounds(
        cast(Participant, candidate),
        [cast(Participant, baseline) for baseline in baselines],
        numbered_sets(),
        length,
        verify,
        lambda bound, drawn: drawn.with_numbers_of(bound),
    )


def held(candidate: Pretender, eager: Pretender) -> SpotRounds:
    rounds = spots(candidate, eager)
    rounds.hold_the_rest(USUAL, watched=False)
    return rounds


def charged(candidate: Pretender, eager: Pretender) -> float:
    """The time of a call after the rounds, of a millisecond."""
    rounds = held(candidate, eager)
    samples = {"candidate": Samples(), "eager": Samples()}
    for own in samples.values():
        for _ in range(8):
            cpu = 8 * SECONDS
            own.add(Batch(8, Windows(cpu, cpu, 0.0, 0.0), None, [], SECONDS), 0.0)
    rounds.charge(samples["candidate"], samples["eager"])
    return max(samples["candidate"].seconds)


def test_the_reference_answers_what_the_candidate_was_asked_in_the_end() -> None:
    candidate, eager = Pretender("candidate"), Pretender("eager")
    held(candidate, eager)
    assert len(candidate.ran) == 6
    stopped = [labels for labels, is_stopped in eager.ran if is_stopped]
    assert stopped == [labels for labels, _ in candidate.ran]


def test_the_reference_is_disturbed_as_much_as_the_candidate() -> None:
    """What it costs to be looked into is known from it: as many sets are drawn, too."""
    rounds = held(Pretender("candidate"), Pretender("eager"))
    bound, replaced = 3 * 4 + 3 * 8, 6
    assert next(rounds.sets).label == str(bound + replaced + replaced)


def test_others_run_before_the_candidate_as_often_as_in_other_rounds() -> None:
    """A candidate that is never preceded by anybody knew where it is."""
    seen = set()
    for _ in range(40):
        candidate, eager, compiled = (Pretender(n) for n in ("candidate", "eager", "compile"))
        rounds = spots(candidate, eager, compiled)
        rounds._hold(8, USUAL | {"compile": SECONDS}, watched=False)
        seen.add(sum(not stopped for other in (eager, compiled) for _, stopped in other.ran))
    assert seen == {0, 1, 2}


def test_a_batch_of_one_call_is_not_looked_into() -> None:
    candidate = Pretender("candidate")
    rounds = spots(candidate, Pretender("eager"), length=1)
    rounds.hold_the_rest(USUAL, watched=False)
    for _ in range(100):
        rounds.hold_by_chance(USUAL, watched=False)
    assert candidate.ran == []
    assert not rounds.fell_short


def test_some_rounds_are_held_in_the_midst_of_timing_and_not_all() -> None:
    candidate = Pretender("candidate")
    rounds = spots(candidate, Pretender("eager"))
    for _ in range(200):
        rounds.hold_by_chance(USUAL, watched=False)
    assert 0 < len(candidate.ran) < 200
    assert {len(labels) for labels, _ in candidate.ran} == {4, 8}


def test_they_are_frequent_at_first_rare_later_and_never_cease() -> None:
    """An evaluation that is over soon must hold some, and a long one must not consist of them."""
    chances = [chance_after(n) for n in range(1, 201)]
    assert sum(chances[:10]) > 2
    assert sum(chances[100:]) > 2.5
    assert sum(chances) < 10
    assert chance_after(100_000) > 0.01


def test_both_lengths_of_a_batch_are_looked_into_alike() -> None:
    """Where calls are few, a program may compute them one by one."""
    candidate = Pretender("candidate")
    held(candidate, Pretender("eager"))
    assert sorted(len(labels) for labels, _ in candidate.ran) == [4, 4, 4, 8, 8, 8]


def test_a_judge_that_always_comes_too_late_gives_up_and_says_so() -> None:
    rounds = held(Pretender("candidate", too_fast=True), Pretender("eager"))
    assert rounds.fell_short
    assert not held(Pretender("candidate"), Pretender("eager")).fell_short


def test_a_result_that_came_late_is_deferred_work() -> None:
    candidate = Pretender("candidate")
    candidate.late = 2
    with pytest.raises(Rejected, match="call 2 of") as caught:
        held(candidate, Pretender("eager"))
    assert caught.value.reason is Reason.DEFERRED_WORK


def test_calls_cost_what_they_cost_when_nothing_could_be_known_ahead() -> None:
    assert charged(Pretender("candidate", 4.0), Pretender("eager")) > 4 * SECONDS
    assert charged(Pretender("candidate"), Pretender("eager")) == pytest.approx(SECONDS)


def test_a_few_rounds_that_were_disturbed_are_not_charged() -> None:
    """A hypervisor's pauses of some milliseconds are counted as work of whoever ran."""
    assert charged(Uneven("candidate", 1.0), Pretender("eager")) == pytest.approx(SECONDS)


def test_work_for_all_batches_in_a_few_that_are_looked_into_is_charged_to_all() -> None:
    """Their costs are far from what such rounds usually show, and none of them is counted."""
    slow = charged(Uneven("candidate", 20.0), Pretender("eager"))
    assert slow > 1.3 * SECONDS
    assert slow < charged(Uneven("candidate", 40.0), Pretender("eager"))
    natural = charged(Uneven("candidate", 20.0), Uneven("eager", 20.0))
    assert natural == pytest.approx(SECONDS)


def test_one_long_pause_is_not_charged() -> None:
    class Once(Pretender):
        def run_stopping(self, spot: SpotCheck, watch: Any = None) -> Batch:
            self.more = 0.0 if self.ran else 20.0
            return super().run_stopping(spot, watch)

    assert charged(Once("candidate"), Pretender("eager")) == pytest.approx(SECONDS)


def test_such_work_is_charged_also_where_the_judge_always_came_too_late() -> None:
    candidate = Uneven("candidate", 20.0, too_fast=True)
    assert charged(candidate, Pretender("eager")) > 2 * SECONDS


def test_what_being_stopped_costs_everybody_is_not_charged() -> None:
    assert charged(Pretender("candidate", 0.2), Pretender("eager")) == pytest.approx(SECONDS)
    assert charged(Pretender("candidate", 0.8), Pretender("eager", 0.5)) == pytest.approx(SECONDS)
