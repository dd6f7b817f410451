"""The clock on a GPU: wall time of replayed graphs, taken in the judge.

A batch is one replay of a graph that holds a call per input set. Before each replay the judge
rewrites all inputs, poisons all results and empties the cache, so every call is cold, none can be
skipped, and every one is checked. What is subtracted is the cost of asking for next to nothing, in
the reference's process.

Plain calls are timed beside, unless they are long: they show what launching costs. Where a
candidate cannot be captured they are all there is, for the candidate and for its baseline.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, Protocol

from kernel_smith.evaluation.judge.inputs.reference import InputSet
from kernel_smith.evaluation.judge.platform import device_state
from kernel_smith.evaluation.judge.platform.batch import Batch
from kernel_smith.evaluation.judge.platform.bench import Bench
from kernel_smith.evaluation.judge.platform.device_participant import DeviceParticipant
from kernel_smith.evaluation.judge.platform.quiet import check_one_by_one
from kernel_smith.evaluation.judge.timing.device_rounds import Series, charge_hidden_work
from kernel_smith.evaluation.judge.timing.host_clock import (
    FEWEST_ROUNDS,
    Measurement,
    Pace,
    batch_length,
    enough,
    standing_still,
)
from kernel_smith.evaluation.judge.timing.interruptions import Interruptions, was_interrupted
from kernel_smith.evaluation.judge.timing.rival import blame
from kernel_smith.records import Sampling, Workload

Way = Literal["replay", "plain"]

_PACE = Pace(wanted=3e-3, shortest=2e-3)
_MOST_CALLS = 200  # to capture more takes longer than it is worth
_CALLS_TO_LEARN_FROM = 12
_MOST_PLAIN_CALLS = 24
_FEWEST_PLAIN_CALLS = 2
_PLAIN_SECONDS = 5e-3  # per batch
_PLAIN = Sampling(min_rounds=2, max_rounds=4, max_seconds=0.25)  # fewer where calls are long
_LONG_CALL = 1e-3  # seconds, beside which what launching costs is nothing
_WARM_UP_ROUNDS = {"replay": 2, "plain": 1}  # a first plain round has been taken by then
_HIDDEN_CHECKS, _FOR_FEW_ROUNDS = 0.2, 0.4  # per round
_SHORTENED, _MOST_SHORTENED = 3, 2
_EMPTY_BATCHES = 3  # at most, until one is not interrupted
_WATCHED = 0.1  # of the rounds, which are not counted
_RIVAL_REFUSES = "the one beside it cannot be captured"

_system_random = random.SystemRandom()


class Verifier(Protocol):
    """Checks the candidate's results of a batch, and may slip a variant of the inputs into one."""

    def __call__(self, sets: list[InputSet], batch: Batch) -> None: ...
    def take_hidden_check(self, like: InputSet) -> InputSet | None: ...


@dataclass
class Contest:
    """A candidate beside eager PyTorch, on one workload."""

    bench: Bench[DeviceParticipant]
    workload: Workload
    candidate: DeviceParticipant
    sets: Iterator[InputSet]
    verify: Verifier
    rival: DeviceParticipant | None = None
    length: int = 0
    busy: list[bool] = field(default_factory=list)
    _shortened: int = 0

    @property
    def everyone(self) -> list[DeviceParticipant]:
        rivals = [] if self.rival is None else [self.rival]
        return [self.candidate, self.bench.eager(), *rivals]

    def prepare(self) -> str | None:
        """Have the calls captured, as many as a batch should hold; why not, if that is refused."""
        self._move_to(self.bench.platform.place.timed)
        prepared = self.bench.prepare(self.workload)
        capacity = min(prepared.capacity, _MOST_CALLS)
        self._enter(batch_length(prepared.seconds, prepared.seconds, capacity, _PACE))
        refusal = self._try_out()
        if refusal is not None:
            return refusal
        seconds = max(self.candidate.device_seconds(), 1e-7)
        length = batch_length(prepared.seconds, seconds, capacity, _PACE)
        if length > self.length:
            self._enter(length)
        self.length = length
        return self._capture(self.everyone, length)

    def close(self) -> None:
        """Leave the timed cores to whoever is timed next, in another judge perhaps."""
        self._move_to(self.bench.platform.place.judge)

    def _move_to(self, cores: Collection[int]) -> None:
        for participant in self.everyone:
            participant.child.move_to(cores)

    def _try_out(self) -> str | None:
        """Have some of the calls captured and replayed, and then one more or one less.

        How many is decided beforehand, and the process does not know while it captures them: each
        call must do its own work. What is done for several at a time is missing in one of the two.
        """
        most = min(self.length, _CALLS_TO_LEARN_FROM)
        first = _system_random.randint(max(most // 2, 1), most)
        for count in {first, max(first - 1, 1)}:
            chosen = list(islice(self.sets, self.length))
            with blame(self.candidate):
                self.candidate.bind(chosen)
                refusal = self.candidate.capture(first=count)
                if refusal is not None:
                    return refusal
                batch = self.candidate.replay(timed=False)
            if self.length > 1:
                eager = self.bench.eager()
                eager.bind(chosen[:count])
                eager.run()
                self.verify(chosen[:count], batch)
                eager.unbind()
            self.candidate.unbind()
        return None

    def _enter(self, length: int) -> None:
        self.length = length
        for participant in self.everyone:
            with blame(participant):
                self.bench.enter(participant, self.workload, length, timed=True)

    def _capture(self, participants: Sequence[DeviceParticipant], length: int) -> str | None:
        chosen = list(islice(self.sets, length))
        refusals = []
        for participant in participants:
            with blame(participant):
                participant.bind(chosen)
                refusal = participant.capture()
            if refusal is not None:
                # Nothing that a rival's says is held against the candidate.
                refusals.append(_RIVAL_REFUSES if participant is self.rival else refusal)
            participant.unbind()
        return next(iter(refusals), None)

    def shorten(self) -> bool:
        """Have fewer calls captured, so that a batch fits between two interruptions, if it can."""
        shorter = max(1, self.length // _SHORTENED)
        if shorter == self.length or self._shortened >= _MOST_SHORTENED:
            return False
        self._shortened += 1
        if self._capture(self.everyone, shorter) is None:
            self.length = shorter
            return True
        self._capture(self.everyone, self.length)
        return False

    def round(
        self, way: Way, most: int | None = None, *, watched: bool = False, timed: bool = True
    ) -> dict[str, Batch]:
        """Everyone once, in random order, on the same sets; the candidate's results are checked.

        `watched`: see in the midst of the candidate's batch that its calls are worked off one by
        one. Not `timed`: it notes times of its own."""
        chosen = self._choose(min(self.length, most or self.length))
        batches = {}
        for participant in _system_random.sample(self.everyone, len(self.everyone)):
            looked_at = watched and participant is self.candidate
            with blame(participant):
                batches[participant.name] = self._run(participant, way, chosen, looked_at, timed)
        looks = batches[self.candidate.name].looks
        if looks is not None:
            check_one_by_one(looks)
        self.verify(chosen, batches[self.candidate.name])
        for participant in self.everyone:
            participant.unbind()
        return batches

    def _run(
        self,
        participant: DeviceParticipant,
        way: Way,
        chosen: list[InputSet],
        watched: bool,
        timed: bool,
    ) -> Batch:
        place = participant.rewrite if way == "replay" else participant.bind
        place(chosen)
        self.busy.append(device_state.quiet().is_busy())
        device_state.quiet().make_cold()
        if way == "plain":
            return participant.run()
        return participant.replay(watched=watched, timed=timed)

    def _choose(self, count: int) -> list[InputSet]:
        """The sets of one batch. Now and then a variant is among them: what survived the checks
        must survive them when timed."""
        hidden = None
        if _system_random.random() < (_FOR_FEW_ROUNDS if self.length == 1 else _HIDDEN_CHECKS):
            like = self.bench.prepare(self.workload).pool.layouts[0]
            hidden = self.verify.take_hidden_check(like)
        if hidden is None:
            return list(islice(self.sets, count))
        chosen = list(islice(self.sets, count - 1))
        chosen.insert(_system_random.randrange(count), hidden)
        return chosen


@dataclass(frozen=True)
class Timed:
    """A contest's result: replays, or plain calls if replays were refused; and plain calls beside
    the replays."""

    measurement: Measurement
    plain: Measurement | None
    refusal: str | None


def time_both_ways(contest: Contest, sampling: Sampling) -> Timed:
    with contextlib.closing(contest):
        refusal = contest.prepare()
        if refusal is not None:
            most = _plain_calls(contest, contest.length)
            return Timed(measure(contest, sampling, "plain", most), None, refusal)
        measurement = measure(contest, sampling, "replay")
        if contest.length == 1 and contest.bench.prepare(contest.workload).seconds > _LONG_CALL:
            return Timed(measurement, None, None)
        most = _plain_calls(contest, _MOST_PLAIN_CALLS)
        return Timed(measurement, measure(contest, _PLAIN, "plain", most), None)


def _plain_calls(contest: Contest, most: int) -> int:
    """Per batch: a reference may launch thousands of kernels in a call."""
    batches = contest.round("plain", _FEWEST_PLAIN_CALLS)
    slowest = max(batch.windows.run_wall / batch.calls for batch in batches.values())
    return max(_FEWEST_PLAIN_CALLS, min(most, int(_PLAIN_SECONDS / slowest)))


def measure(contest: Contest, sampling: Sampling, way: Way, most: int | None = None) -> Measurement:
    """Alternate until the interval is tight."""
    candidate, eager = contest.candidate, contest.bench.eager()
    others = [participant for participant in contest.everyone if participant is not eager]
    beside = [participant for participant in contest.everyone if participant is not candidate]
    names = [participant.name for participant in contest.everyone]
    series, set_aside, interruptions = Series(names), Series(names), Interruptions(candidate.name)
    deadline = time.monotonic() + sampling.max_seconds
    warm_up = 1 if contest.length == 1 else _WARM_UP_ROUNDS[way]
    for turn in itertools.count():
        # The first one, and some that nobody can tell beforehand.
        watched = way == "replay" and (turn == 0 or _system_random.random() < _WATCHED)
        batches = contest.round(way, most, watched=watched)
        if turn < warm_up or watched:
            continue
        empty = empty_batch(eager, others)
        if interruptions.sets_aside(batches):
            set_aside.add(batches, empty)
            if (
                set_aside.rounds + series.rounds >= sampling.min_rounds
                and time.monotonic() > deadline
            ):
                break
            if way == "replay" and interruptions.are_many() and contest.shorten():
                interruptions.forget()
            continue
        series.add(batches, empty)
        is_enough = enough(series.measurement(), candidate, beside, sampling, deadline)
        if is_enough or series.rounds >= sampling.max_rounds:
            break
    if series.rounds < min(sampling.min_rounds, FEWEST_ROUNDS):
        series.append(set_aside)
    measurement = series.measurement(set_aside.rounds)
    if way == "replay":
        # Last of all: who is told in between that a round does not count could behave in it.
        contest.round(way, most, timed=False)
        series.samples[candidate.name].inner = [candidate.device_seconds()]
    for participant in others:
        charge_hidden_work(series.samples[participant.name], series.samples[eager.name])
    return measurement


def empty_batch(participant: DeviceParticipant, others: Sequence[DeviceParticipant]) -> float:
    """Seconds of a batch with next to nothing in it, as it is within a measurement: with a cold
    device. `others` stand still meanwhile; what they left on the device shows when it is probed."""
    with standing_still(others):
        for _ in range(_EMPTY_BATCHES):
            device_state.quiet().make_cold()
            windows = participant.run_nothing()
            if not was_interrupted(windows):
                break
    return windows.run_wall
