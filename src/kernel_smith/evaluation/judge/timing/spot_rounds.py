"""Rounds in which a candidate's batch is looked into, in the midst of timing.

They are not counted, which the candidate cannot know before it is stopped. What it gets wrong in
one of them it has not computed call by call.

A program could read inputs early and look at them again in time: it is right then, but has done
the work twice. So what its calls cost in these rounds, in processor time, is what they cost.

Each one takes longer than a round that is counted. So they are held often at first and ever more
rarely later: six in ten rounds, nine in two hundred. `benchmarks/spot_check_odds.py` says what
chance that leaves to a program that computes calls together in some batches only.
"""

from __future__ import annotations

import random
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from kernel_smith.evaluation.judge.inputs.reference import InputSet
from kernel_smith.evaluation.judge.platform.batch import Batch
from kernel_smith.evaluation.judge.platform.participant import Participant
from kernel_smith.evaluation.judge.platform.spot_check import SpotCheck
from kernel_smith.evaluation.judge.rejection import Rejected
from kernel_smith.evaluation.judge.timing.rival import blame
from kernel_smith.records import Reason

if TYPE_CHECKING:
    from kernel_smith.evaluation.judge.timing.host_clock import Samples

FEWEST = 6  # per workload
# After the nth round one follows with a chance of 1.5 in n, within these bounds.
_HIGHEST_CHANCE, _CHANCE_TIMES_ROUNDS, _LOWEST_CHANCE = 0.3, 1.5, 0.03
_MOST_TRIES = 120  # on a busy machine a batch may be over before the judge comes to stop it
_TELLING = 4  # calls that got other inputs; of a short batch a half
_NATURAL_SHARE = 0.4  # by which calls differ, and more where caches are cold
_NATURAL_SECONDS = 100e-6  # per batch
_UNEVEN_SECONDS = 0.002  # in all, for the machine's doing

_system_random = random.SystemRandom()


@dataclass
class Cost:
    """Processor time of a batch that was looked into."""

    cpu: float
    calls: int

    def above(self, usual: float) -> float:
        """Seconds more than so many calls usually cost."""
        return self.cpu - self.calls * usual


@dataclass
class SpotRounds:
    """Those of one workload. `baselines`: others that take part, the reference first.
    `in_place_of`: one of `sets` as it may replace the inputs of a call."""

    candidate: Participant
    baselines: Sequence[Participant]
    sets: Iterator[InputSet]
    length: int
    verify: Callable[[list[InputSet], Batch], None]
    in_place_of: Callable[[InputSet, InputSet], InputSet]
    _costs: list[Cost] = field(default_factory=list)  # of those that say what a call costs
    _all_costs: list[Cost] = field(default_factory=list)
    _reference_costs: list[Cost] = field(default_factory=list)
    _held: Counter[int] = field(default_factory=Counter)  # by length, also those that came late
    _rounds: int = 0

    def hold_by_chance(self, usual: Mapping[str, float], *, watched: bool) -> None:
        """Let nobody foresee after which of the other rounds one of these follows."""
        self._rounds += 1
        if self._lengths and _system_random.random() < chance_after(self._rounds):
            self._hold(_system_random.choice(self._lengths), usual, watched=watched)

    def hold_the_rest(self, usual: Mapping[str, float], *, watched: bool) -> None:
        """Hold as many as are needed at least, of both lengths: a candidate knows how long a batch
        is, and may compute calls one by one where they are few."""
        while self.fell_short and self._held.total() < _MOST_TRIES:
            rarest = min(self._lengths, key=self._held.__getitem__)
            self._hold(rarest, usual, watched=watched)

    @property
    def _lengths(self) -> list[int]:
        """Those of the rounds that are counted; a single call cannot be computed with others."""
        return [count for count in (self.length, self.length // 2) if count > 1]

    @property
    def fell_short(self) -> bool:
        """Are there fewer than are needed? Beside busy programs the judge may come too late."""
        return self.length > 1 and len(self._costs) < FEWEST

    def _hold(self, count: int, usual: Mapping[str, float], *, watched: bool) -> None:
        """Look into one batch of so many calls. `usual`: seconds per call, by participant."""
        self._held[count] += 1
        reference = self.baselines[0]
        chosen = list(islice(self.sets, count))
        self._run_those_before(chosen, watched=watched)
        spot = SpotCheck(count * usual[self.candidate.name], self._draw_in_place_of)
        batch = _run(self.candidate, chosen, spot, watched=watched)
        late = self.candidate.came_late(spot)
        if late is not None:
            raise Rejected(
                Reason.DEFERRED_WORK,
                f"call {late} of {count} had returned, and its result was not there yet",
            )
        asked = self.candidate.bound_sets
        same = SpotCheck(count * usual[reference.name], self._draw_and_keep)
        answered = _run(reference, asked, same, watched=watched)
        self.verify(asked, batch)
        for participant in (self.candidate, *self.baselines):
            participant.unbind()
        cost = Cost(batch.windows.run_cpu, count)
        self._all_costs.append(cost)
        if spot.exchanged >= min(_TELLING, count // 2):
            self._costs.append(cost)
        self._reference_costs.append(Cost(answered.windows.run_cpu, count))

    def _draw_in_place_of(self, bound: InputSet) -> InputSet:
        return self.in_place_of(bound, next(self.sets))

    def _draw_and_keep(self, bound: InputSet) -> InputSet:
        """Take as long, and touch as much memory, as where inputs are replaced: what it costs to be
        looked into is told by the reference, whose inputs are written once more."""
        self._draw_in_place_of(bound)
        return bound

    def _run_those_before(self, chosen: list[InputSet], *, watched: bool) -> None:
        """In the order that a round has by chance: a pause must not announce this one."""
        everyone = [self.candidate, *self.baselines]
        order = _system_random.sample(everyone, len(everyone))
        for participant in order[: order.index(self.candidate)]:
            with blame(participant):
                _run(participant, chosen, None, watched=watched)

    def charge(self, candidate: Samples, reference: Samples) -> None:
        """Add to the time of calls what they cost more in these rounds: usually, or in all."""
        if not self._all_costs:
            return
        excess = max(
            self._usual_excess(candidate, reference), self._excess_in_all(candidate, reference)
        )
        if excess > 0:
            # Where several cores took part, the time is shorter than what the processors spent.
            cpu = sum(window.run_cpu for window in candidate.windows)
            wall = excess * min(1.0, sum(w.run_wall for w in candidate.windows) / cpu)
            candidate.seconds = [seconds + wall for seconds in candidate.seconds]

    def _usual_excess(self, candidate: Samples, reference: Samples) -> float:
        """Return by how much a call usually costs more than in the counted rounds.

        What it costs to be stopped, the reference's process shows. Of the counted rounds the
        cheaper ones are taken, in case that calls were computed together in some of them.
        """
        if not self._costs:
            return 0.0
        theirs, usual = (_lower_quarter(_cpu_per_call(s)) for s in (reference, candidate))
        natural = statistics.median(cost.above(theirs) for cost in self._reference_costs)
        tolerated = max(natural, 0.0) + _NATURAL_SECONDS
        return statistics.median(
            (cost.above((1 + _NATURAL_SHARE) * usual) - tolerated) / cost.calls
            for cost in self._costs
        )

    def _excess_in_all(self, candidate: Samples, reference: Samples) -> float:
        """Return what each call of all rounds costs more if work for many of them was done in some
        of these: beside busy programs there may be more of these than of those that count."""
        theirs, usual = (own.calling_cpu()[1] / own.calls for own in (reference, candidate))
        natural = max(sum(cost.above(theirs) for cost in self._reference_costs), 0.0)
        above = sorted(cost.above((1 + _NATURAL_SHARE) * usual) for cost in self._all_costs)
        excess = sum(above[:-1])  # one may be a hypervisor's pause, which is counted as work
        tolerated = natural + _NATURAL_SECONDS * len(self._all_costs) + _UNEVEN_SECONDS
        calls = candidate.calls + sum(cost.calls for cost in self._all_costs)
        return (excess - tolerated) / calls


def chance_after(rounds: int) -> float:
    """Return how likely it is that one of these follows after so many others.

    A measuring may end after ten rounds, so there are some among the first. Whoever behaves so long
    is to be found out as well, so they never cease.
    """
    return max(_LOWEST_CHANCE, min(_HIGHEST_CHANCE, _CHANCE_TIMES_ROUNDS / rounds))


def _run(
    participant: Participant, sets: Sequence[InputSet], spot: SpotCheck | None, *, watched: bool
) -> Batch:
    watch = participant.sampler if watched else None
    participant.bind(sets)
    batch = participant.run(watch=watch) if spot is None else participant.run_stopping(spot, watch)
    if watch is not None:
        watch.drain()
    return batch


def _cpu_per_call(samples: Samples) -> Iterator[float]:
    pairs = zip(samples.windows, samples.lengths, strict=True)
    return (window.run_cpu / calls for window, calls in pairs)


def _lower_quarter(values: Iterable[float]) -> float:
    """What a quarter of the values stay below, or one of a few."""
    ordered = sorted(values)
    return ordered[len(ordered) // 4]
