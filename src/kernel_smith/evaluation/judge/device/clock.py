"""The clock on a GPU: wall time of replayed graphs, taken in the judge.

A batch is one replay of a graph that holds a call per input set. Before each replay the judge
rewrites all inputs, poisons all results and empties the cache, so every call is cold, none can be
skipped, and every one is checked. What is subtracted is the cost of asking for next to nothing, in
the reference's process.

Plain calls are timed beside: they show what launching costs. Where a candidate cannot be captured
they are all there is, for the candidate and for its baselines.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from kernel_smith.evaluation.judge.clock import Measurement, Samples, enough
from kernel_smith.evaluation.judge.correctness import TimedVerifier
from kernel_smith.evaluation.judge.device.bench import empty_seconds
from kernel_smith.evaluation.judge.device.participant import DeviceParticipant
from kernel_smith.evaluation.judge.device.quiet import Quiet
from kernel_smith.evaluation.judge.participant import Batch
from kernel_smith.evaluation.judge.reference import InputSet
from kernel_smith.records import Sampling

Way = Literal["replay", "plain"]

_WARM_UP_ROUNDS = 2
_SIGMAS = 3.0
_SURPRISES = 0.2  # per round

_system_random = random.SystemRandom()


@dataclass
class Contest:
    """A candidate and its baselines on one workload, entered with room for `length` calls."""

    candidate: DeviceParticipant
    baselines: Sequence[DeviceParticipant]
    sets: Iterator[InputSet]
    length: int
    quiet: Quiet
    verify: TimedVerifier
    busy: list[bool] = field(default_factory=list)
    switching: dict[str, list[float]] = field(default_factory=dict)

    @property
    def everyone(self) -> list[DeviceParticipant]:
        return [self.candidate, *self.baselines]

    def capture(self) -> str | None:
        """Bind everyone and have the calls captured; why the candidate's could not be, if so."""
        chosen = list(islice(self.sets, self.length))
        for participant in self.everyone:
            participant.bind(chosen)
        refusals = [participant.capture() for participant in self.everyone]
        return next((refusal for refusal in refusals if refusal is not None), None)

    def round(self, way: Way) -> dict[str, Batch]:
        """Everyone once, in random order, on the same sets; the candidate's results are checked."""
        chosen = list(islice(self.sets, self.length))
        if _system_random.random() < _SURPRISES:
            self._surprise(chosen)
        batches = {}
        for participant in _system_random.sample(self.everyone, len(self.everyone)):
            if way == "plain":
                participant.bind(chosen)
            else:
                participant.rewrite(chosen)
            self.busy.append(self.quiet.is_busy())
            self.quiet.make_cold()
            replayed = way == "replay"
            batches[participant.name] = participant.replay() if replayed else participant.run()
            self.switching.setdefault(participant.name, []).append(participant.switching_seconds)
        self.verify(chosen, batches[self.candidate.name])
        return batches

    def _surprise(self, chosen: list[InputSet]) -> None:
        """Put a variant among the sets: what survived the checks must survive them when timed."""
        variant = self.verify.take_surprise(chosen[0])
        if variant is not None:
            chosen[_system_random.randrange(len(chosen))] = variant


def measure(contest: Contest, sampling: Sampling, way: Way) -> Measurement:
    """Alternate until the interval is tight."""
    samples = {participant.name: Samples() for participant in contest.everyone}
    empty = empty_seconds(contest.baselines[0], contest.quiet)
    deadline = time.monotonic() + sampling.max_seconds
    measurement = Measurement(samples, 0, 0)
    for turn in range(_WARM_UP_ROUNDS + sampling.max_rounds):
        batches = contest.round(way)
        if turn < _WARM_UP_ROUNDS:
            continue
        for name, batch in batches.items():
            samples[name].add(batch, empty)
        calls = measurement.calls + contest.length
        measurement = Measurement(samples, measurement.rounds + 1, calls)
        if enough(measurement, contest.candidate, contest.baselines, sampling, deadline):
            break
    _charge_hidden_work(contest, samples[contest.candidate.name])
    return measurement


def _charge_hidden_work(contest: Contest, mine: Samples) -> None:
    """A process takes over the device before a batch, when the inputs are there already, and the
    judge takes it back afterwards.

    Where that takes longer than with the reference's process, beyond what chance explains, the
    candidate is charged the difference: there is nothing to be gained by an early start, or by
    calling the work finished before it is.
    """
    own = contest.switching[contest.candidate.name]
    usual = contest.switching[contest.baselines[0].name]
    excess = statistics.median(own) - statistics.median(usual)
    chance = math.sqrt((_spread(own) ** 2 + _spread(usual) ** 2) / len(own))
    charged = excess - _SIGMAS * chance
    if charged > 0:
        mine.seconds = [seconds + charged / contest.length for seconds in mine.seconds]


def _spread(seconds: Sequence[float]) -> float:
    """The standard deviation, by the quartiles: a few delays do not matter."""
    low, _, high = statistics.quantiles(seconds, n=4)
    return (high - low) / 1.35
