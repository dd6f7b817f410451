"""The clock: wall time of batches, taken in the judge, for candidate and baselines in turn.

A batch of k calls works on k input sets that its process has never seen, so no call can be
skipped. The time per call is the slope between an empty batch and a full one: the round trip of an
empty batch is measured in the reference's process, whose word can be trusted, and subtracted for
everyone. (Were it taken from the candidate's own short batches, a candidate could slow those down
on purpose.)

Participants alternate in random order on the same cores. Each round gives one ratio per baseline;
sampling stops when their interval is tight enough, or the budget is spent.
"""

from __future__ import annotations

import contextlib
import math
import random
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from kernel_smith.evaluation.judge.evidence.environment import fill_bytes_per_second
from kernel_smith.evaluation.judge.inputs.reference import InputSet
from kernel_smith.evaluation.judge.platform.batch import Batch, Windows
from kernel_smith.evaluation.judge.platform.participant import RIVAL, Participant
from kernel_smith.evaluation.judge.timing.integrity import check_rest
from kernel_smith.evaluation.judge.timing.rival import blame
from kernel_smith.evaluation.judge.timing.spot_rounds import SpotRounds
from kernel_smith.evaluation.judge.timing.statistics import LogRatio, estimate, usual_sum
from kernel_smith.records import Sampling

_MOST_CALLS = 512
_EMPTY_BATCHES = 9
_ASKING_SHARE = 0.01  # of a batch, below which it makes no difference
_ROUNDS_BETWEEN_LOOKS = 5
_SHARE_OF_DIFFERENCE = 0.02
_WARM_UP_ROUNDS = 2
_MOST_MORE_ROUNDS, _MOST_MORE_SECONDS = 400, 12.0  # where the first ones left something open
FEWEST_ROUNDS = 5  # of calls so long that more would take longer than was asked for
_USUAL_SERVICE = 1.05
# Where a hypervisor takes the processor away, the pause is counted as work, rarely and briefly.
_UNEVEN_SHARE, _UNEVEN_SECONDS = 0.05, 0.002
_USUAL_FRESH = 1.5  # times: one program takes memory in another order than the next
_HIDDEN_CHECKS = 0.1  # per round
_ERROR_OF_A_QUARTILE = 1.3  # in terms of that of a mean

_system_random = random.SystemRandom()


@dataclass(frozen=True)
class Pace:
    """How long batches are to be, in seconds."""

    wanted: float = 2e-3
    shortest: float = 5e-4
    longest: float = 0.1


_USUAL_PACE = Pace()


@dataclass
class Samples:
    """What one participant showed in the rounds of one workload."""

    seconds: list[float] = field(default_factory=list)
    windows: list[Windows] = field(default_factory=list)
    inner: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)  # calls per batch

    @property
    def calls(self) -> int:
        return sum(self.lengths)

    @property
    def cpu_per_call(self) -> float:
        return sum(window.run_cpu for window in self.windows) / self.calls

    def add(self, batch: Batch, empty: float) -> None:
        self.windows.append(batch.windows)
        self.inner.append(batch.inner_seconds)
        self.lengths.append(batch.calls)
        self.seconds.append(_per_call(batch.windows, batch.calls, empty))

    def subtract(self, empty: Sequence[float]) -> None:
        """Take the times anew, with what is known now of the cost of asking in each round."""
        rounds = zip(self.windows, self.lengths, empty, strict=True)
        self.seconds = [_per_call(window, calls, cost) for window, calls, cost in rounds]

    def outside_cpu(self) -> float:
        """Processor seconds that its process used beside the calls."""
        return usual_sum([w.service_cpu + w.idle_cpu for w in self.windows])

    def fresh_bytes(self) -> float:
        """Of results that lay where none had been before."""
        return sum(window.fresh_bytes for window in self.windows)

    def calling_cpu(self) -> tuple[float, float]:
        """Processor seconds of all calls: as they were, and had the costliest batches been like the
        others."""
        spent = [window.run_cpu for window in self.windows]
        per_call = [cpu / calls for cpu, calls in zip(spent, self.lengths, strict=True)]
        return sum(spent), usual_sum(per_call) / len(per_call) * self.calls


def _per_call(windows: Windows, calls: int, empty: float) -> float:
    return max(windows.run_wall - empty, 1e-9) / calls


@dataclass(frozen=True)
class Measurement:
    """The rounds of one workload: samples by participant, ratios by baseline."""

    samples: dict[str, Samples]
    rounds: int
    calls: int
    doubt: float = 0.0  # seconds per call that the cost of asking varied by
    asking_error: float = 0.0  # the standard error of its estimate, in seconds per call
    process_error: float = 0.0  # by how much it differs between processes, the same
    pointers: list[int] = field(default_factory=list)  # where the candidate was, if watched
    linear: bool = False  # is noise added to batches that may be as short?
    set_aside: int = 0  # rounds in which somebody was kept waiting for a core

    def log_ratio(self, baseline: str, candidate: str) -> LogRatio:
        """All rounds subtract the same cost of asking, as it is in the reference's process. If it
        is wrong, or another one in the candidate's, so are all of them: that does not show in how
        much they differ."""
        own, others = (statistics.median(self.samples[n].seconds) for n in (candidate, baseline))
        wrong = self.asking_error * abs(1 / own - 1 / others)
        unlucky = self.process_error / own
        return self.sampled_ratio(baseline, candidate).allowing_for(math.hypot(wrong, unlucky))

    def sampled_ratio(self, baseline: str, candidate: str) -> LogRatio:
        """The same with as much doubt as more rounds could settle.

        Where noise is about as large as what is timed, the logarithms of single rounds would be far
        off, those of short ones most. There rounds deviate from the ratio of the middles instead.
        """
        ours, theirs = self.samples[candidate].seconds, self.samples[baseline].seconds
        pairs = list(zip(ours, theirs, strict=True))
        if not self.linear:
            return estimate([math.log(b / a) for a, b in pairs])
        own, others = statistics.median(ours), statistics.median(theirs)
        return estimate([math.log(others / own) + b / others - a / own for a, b in pairs])


def batch_length(
    reference_seconds: float,
    candidate_seconds: float,
    capacity: int,
    pace: Pace = _USUAL_PACE,
    *,
    rival_seconds: float = 0.0,
) -> int:
    """Calls per batch: chosen by the reference; more for a fast candidate, fewer for a slow one."""
    wanted = max(pace.wanted / reference_seconds, pace.shortest / candidate_seconds)
    affordable = pace.longest / max(candidate_seconds, reference_seconds, rival_seconds)
    return max(1, min(math.ceil(wanted), math.floor(affordable), capacity))


def capacity_for(bytes_per_call: int, budget: int) -> int:
    """The longest batch whose inputs and outputs fit into `budget` bytes of shared memory."""
    return max(1, min(_MOST_CALLS, budget // max(bytes_per_call, 1)))


def measure(
    candidate: Participant,
    baselines: Sequence[Participant],
    sets: Iterator[InputSet],
    length: int,
    sampling: Sampling,
    verify: Callable[[list[InputSet], Batch], None],
    check_hidden: Callable[[], bool] = lambda: False,
    spots: SpotRounds | None = None,
    *,
    watched: bool = False,
    settled: Callable[[Measurement], bool] = lambda _: True,
) -> Measurement:
    """Alternate until the interval is tight.

    `verify` sees every batch of the candidate. `check_hidden` checks it on something else, now and
    then between rounds and at the end, as often as it says that there is more to check. `spots`:
    rounds that are looked into, at such times as well. `watched`: sample whose code runs. That
    takes a few percent of everybody's time, so it is done to everybody and in every round: what is
    sampled can be felt, and must not differ from what is timed. `settled`: is all else known that
    rounds are to tell? If not, more are held, within bounds.
    """
    everyone = [candidate, *baselines]
    reference, *others = baselines
    samples = {participant.name: Samples() for participant in everyone}
    asking: Asking | None = None
    deadline = time.monotonic() + sampling.max_seconds
    warm_up = 1 if length == 1 else _WARM_UP_ROUNDS
    rounds = calls = 0
    pointers: list[int] = []
    for turn in range(warm_up + sampling.max_rounds + _MOST_MORE_ROUNDS):
        count = _system_random.choice((length, max(1, length // 2)))
        chosen = list(islice(sets, count))
        if asking is None:
            check_rest(candidate.restless_seconds())
            asking = cost_of_asking(reference, chosen[0], [candidate, *others])
        batches = {}
        for participant in _system_random.sample(everyone, len(everyone)):
            with blame(participant):
                participant.bind(chosen)
                watch = participant.sampler if watched else None
                batches[participant.name] = participant.run(watch=watch)
            if watch is not None:
                seen = watch.drain()
                pointers += seen if participant is candidate else []
        verify(chosen, batches[candidate.name])
        for participant in everyone:
            participant.unbind()
        del chosen  # before others are drawn
        if _system_random.random() < _HIDDEN_CHECKS:
            check_hidden()
        if spots is not None:
            usual = {name: batch.windows.run_cpu / count for name, batch in batches.items()}
            spots.hold_by_chance(usual, watched=watched)
        calls += count
        if turn < warm_up:
            continue
        for name, batch in batches.items():
            samples[name].add(batch, asking.usual)
        rounds += 1
        measurement = _measurement(samples, rounds, calls, asking, pointers)
        if rounds >= sampling.max_rounds or enough(
            measurement, candidate, baselines, sampling, deadline, _MOST_MORE_SECONDS
        ):
            gave_up = time.monotonic() > deadline + _MOST_MORE_SECONDS
            if gave_up or settled(measurement):
                break
    if spots is not None:
        spots.hold_the_rest(usual, watched=watched)
    while check_hidden():
        pass
    assert asking is not None, "there was a round"
    if asking.matters(samples.values()):
        again = cost_of_asking(reference, next(sets), [candidate, *others])
        if again.usual < asking.usual:
            measurement = _measurement(samples, rounds, calls, again, pointers)
            for own in samples.values():
                own.subtract([again.usual] * rounds)
    for name in samples.keys() & {candidate.name, RIVAL}:
        _charge(samples[name], samples[reference.name])
    if spots is not None:
        spots.charge(samples[candidate.name], samples[reference.name])
    return measurement


def _measurement(
    samples: dict[str, Samples], rounds: int, calls: int, asking: Asking, pointers: list[int]
) -> Measurement:
    share = rounds / calls  # of the cost of asking, for each call
    doubt, error = asking.spread * share, asking.error * share
    return Measurement(samples, rounds, calls, doubt, error, pointers=pointers)


def _charge(participant: Samples, reference: Samples) -> None:
    """Add to the time of calls what was done where the clock does not see it."""
    _charge_outside_work(participant, reference)
    _charge_uneven_work(participant, reference)
    _charge_fresh_memory(participant, reference)


def _charge_outside_work(participant: Samples, reference: Samples) -> None:
    """Work that was moved out of the calls is added to their time, so that moving it is in vain.

    What the reference's process needs for the same hand-over, and a little more, is free.
    """
    excess = participant.outside_cpu() - _USUAL_SERVICE * reference.outside_cpu()
    if excess > 0:
        participant.seconds = [s + excess / participant.calls for s in participant.seconds]


def _charge_uneven_work(participant: Samples, reference: Samples) -> None:
    """Work for many batches that was done in a few counts for all of them.

    The costliest rounds are left out of the estimate, because mostly it was the machine that made
    them so. But a busy machine takes wall time, and hardly any processor time: what a participant
    spent of that in all must be what its usual batches suggest, as far as the reference's does.
    """
    spent, usual = participant.calling_cpu()
    reference_spent, reference_usual = reference.calling_cpu()
    if min(usual, reference_usual) <= 0:
        return
    natural = max(reference_spent / reference_usual, 1.0) + _UNEVEN_SHARE
    excess = spent - natural * usual - _UNEVEN_SECONDS
    if excess > 0:
        # Where several cores took part, the time is shorter than what the processors spent.
        wall = excess * min(1.0, sum(w.run_wall for w in participant.windows) / spent)
        participant.seconds = [s + wall / participant.calls for s in participant.seconds]


def _charge_fresh_memory(participant: Samples, reference: Samples) -> None:
    """Results in memory where none had been before are charged what it takes to fill it.

    It may have been made ready while nobody looked at the time. Who goes on for long uses memory
    again, as the reference's process does after some batches.
    """
    excess = participant.fresh_bytes() - _USUAL_FRESH * reference.fresh_bytes()
    if excess > 0:
        wall = excess / fill_bytes_per_second() / participant.calls
        participant.seconds = [seconds + wall for seconds in participant.seconds]


def enough(
    measurement: Measurement,
    candidate: Participant,
    baselines: Sequence[Participant],
    sampling: Sampling,
    deadline: float,
    patience: float = 0.0,
) -> bool:
    """Is the interval tight enough, or the time over? `patience`: seconds beyond it in which there
    may still be too few rounds."""
    late = time.monotonic() - deadline
    # One call a round is all that there is time for, or memory.
    long_calls = measurement.samples[candidate.name].calls == measurement.rounds
    # Beside busy programs so few as do for those are too few: some are off by a factor.
    few_do = long_calls or late > patience
    fewest = min(sampling.min_rounds, FEWEST_ROUNDS) if few_do else sampling.min_rounds
    if measurement.rounds < fewest:
        return False
    if late > 0:
        return True
    if not long_calls and (measurement.rounds - fewest) % _ROUNDS_BETWEEN_LOOKS:
        return False
    ratios = [measurement.sampled_ratio(b.name, candidate.name) for b in baselines]
    return all(r.interval().half_width <= _wanted_width(r, sampling) for r in ratios)


def _wanted_width(ratio: LogRatio, sampling: Sampling) -> float:
    """Equals are told apart by fine measurement; for what is three times as fast two percent
    decide nothing, and on a noisy machine they would take most of the time."""
    for_difference = min(_SHARE_OF_DIFFERENCE * abs(ratio.mean), sampling.unstable_above / 2)
    return max(sampling.target, for_difference)


class Asking(NamedTuple):
    """The cost of a batch without calls, in seconds."""

    usual: float
    spread: float  # of the middle half: one that was interrupted is no reason to doubt the others
    error: float

    @classmethod
    def of(cls, walls: Sequence[float]) -> Asking:
        """The lower quartile: on a busy machine most may be stretched, and too much would be
        subtracted."""
        ordered = sorted(walls)
        low, high = (ordered[len(ordered) * quarter // 4] for quarter in (1, 3))
        spread = high - low
        return cls(low, spread, spread / 1.35 * _ERROR_OF_A_QUARTILE / math.sqrt(len(walls)))

    def matters(self, samples: Iterable[Samples]) -> bool:
        """Is it worth measuring again in another moment? Beside busy programs all empty batches of
        one moment may be stretched, and who is fast would be flattered by what is subtracted."""
        shortest = min(min(w.run_wall for w in own.windows) for own in samples)
        return self.usual > _ASKING_SHARE * shortest


def cost_of_asking(
    reference: Participant, any_set: InputSet, others: Sequence[Participant] = ()
) -> Asking:
    """Measured where nobody has an interest in its length, while whoever has stands still: what is
    subtracted from everybody's time makes the faster one look faster still."""
    reference.bind([any_set])
    with standing_still(others):
        return Asking.of([reference.run(0).windows.run_wall for _ in range(_EMPTY_BATCHES)])


@contextlib.contextmanager
def standing_still(participants: Sequence[Participant]) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for participant in participants:
            with blame(participant):
                stack.enter_context(participant.child.standing_still())
        yield
