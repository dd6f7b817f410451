"""The rounds of a measurement on a GPU: what is subtracted from them, and what is charged.

What is subtracted is the cost of asking for next to nothing, in the reference's process.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from kernel_smith.evaluation.judge.platform.batch import Batch
from kernel_smith.evaluation.judge.timing.host_clock import Asking, Measurement, Samples
from kernel_smith.evaluation.judge.timing.interruptions import was_interrupted

# A batch takes longer in some processes than in others with the same kernels, by about as much
# (`benchmarks/gpu_processes.py`).
_PROCESS_SECONDS = 2.5e-6
# Handing the device over takes 0.5 to 0.7 ms, and in one process as much longer than in another in
# all rounds of a workload: the standard deviation, rounded up (`benchmarks/gpu_rounds.py`).
_HAND_OVER_SECONDS = 4e-5
_NEIGHBOURS = 2  # rounds on either side
_SIGMAS = 3.0


class Series:
    """Rounds that are evaluated together."""

    def __init__(self, names: Iterable[str]) -> None:
        self.samples = {name: Samples() for name in names}
        self._rounds: list[tuple[Mapping[str, Batch], float]] = []
        self._walls: list[float] = []
        self._waited = 0.0  # by those who were interrupted

    @property
    def rounds(self) -> int:
        return len(self._rounds)

    def add(self, batches: Mapping[str, Batch], empty: float) -> None:
        """`empty`: the seconds of a batch with next to nothing in it, taken beside."""
        self._rounds.append((batches, empty))
        self._walls.append(empty)
        costs = costs_of_asking(self._walls)
        for name, batch in batches.items():
            self.samples[name].add(batch, costs[-1])
            self.samples[name].subtract(costs)
        interrupted = [b.windows for b in batches.values() if was_interrupted(b.windows)]
        self._waited += max((windows.waited for windows in interrupted), default=0.0)

    def append(self, other: Series) -> None:
        for batches, empty in other._rounds:
            self.add(batches, empty)

    def measurement(self, set_aside: int = 0) -> Measurement:
        """Where interrupted rounds count, for want of others, by as much is it in doubt."""
        calls = max((own.calls for own in self.samples.values()), default=0)
        if not calls:
            return Measurement(self.samples, 0, 0)
        doubt = Asking.of(self._walls).spread * self.rounds / calls
        luck = math.hypot(_PROCESS_SECONDS * self.rounds, self._waited) / calls
        return Measurement(
            self.samples,
            self.rounds,
            calls,
            doubt,
            process_error=luck,
            linear=True,
            set_aside=set_aside,
        )


def costs_of_asking(walls: Sequence[float]) -> list[float]:
    """For each round, from its own empty batch and those of its neighbours: the cost changes by
    half within a second, and by little from one round to the next."""
    near = [
        walls[max(turn - _NEIGHBOURS, 0) : turn + _NEIGHBOURS + 1] for turn in range(len(walls))
    ]
    return [statistics.median(some) for some in near]


def charge_hidden_work(participant: Samples, reference: Samples) -> None:
    """A process takes over the device before a batch, when the inputs are there already, and the
    judge takes it back afterwards.

    Where that takes longer than with the reference's process, beyond what chance explains, the
    difference is charged: there is next to nothing to be gained by an early start, or by calling
    the work finished before it is. What chance explains is told by how far the reference's process
    varies, since a participant can vary its own times at will, and by how far processes differ. And
    it is charged round by round, if more, so no more is gained by hiding work in some of them.
    """
    own, usual = ([w.switching_wall for w in side.windows] for side in (participant, reference))
    middle, spread = statistics.median(usual), _spread(usual)
    of_middles = math.hypot(spread * math.sqrt(2 / len(own)), _HAND_OVER_SECONDS)
    always = statistics.median(own) - middle - _SIGMAS * of_middles
    explained = middle + _SIGMAS * math.hypot(spread, _HAND_OVER_SECONDS)
    charged = (max(always, seconds - explained, 0.0) for seconds in own)
    participant.seconds = [
        seconds + excess / calls
        for seconds, excess, calls in zip(
            participant.seconds, charged, participant.lengths, strict=True
        )
    ]


def _spread(seconds: Sequence[float]) -> float:
    """The standard deviation, by the quartiles: a few delays do not matter."""
    low, _, high = statistics.quantiles(seconds, n=4)
    return (high - low) / 1.35
