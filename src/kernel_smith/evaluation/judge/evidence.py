"""What an accepted candidate's record says: speedups with intervals, and where the time went."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

from kernel_smith.evaluation.judge.child import ChildFailed
from kernel_smith.evaluation.judge.clock import Measurement
from kernel_smith.evaluation.judge.nursery import Place
from kernel_smith.evaluation.judge.participant import Participant
from kernel_smith.evaluation.judge.profile import attribute, read_maps
from kernel_smith.evaluation.judge.reference import InputSet
from kernel_smith.evaluation.judge.statistics import combine, distribution
from kernel_smith.records import (
    BaselineSpeedup,
    BaselineTiming,
    Interval,
    KernelShare,
    Options,
    Reason,
    Task,
    Timing,
    Workload,
    WorkloadTiming,
)

_PROFILE_SECONDS = 0.04
_PROFILE_CALLS = 64


class Sampled(NamedTuple):
    """Whose code ran in one workload's calls, and how much processor time each of them took."""

    shares: tuple[KernelShare, ...]
    seconds_per_call: float


class Profile:
    """Samples where the candidate's process executes, in batches that it cannot tell from timed
    ones. They are not timed: sampling would slow the candidate and not the reference."""

    def __init__(self, candidate: Participant, objects: str, *, own_build: bool) -> None:
        self._candidate = candidate
        # Without a compiler of its own, a candidate can only have copied what is in its scratch.
        built = (f"{candidate.child.scratch}/",) if own_build else ()
        self._authored = (f"{objects}/", *built)
        self._pointers: list[int] = []

    def sample(self, sets: Iterator[InputSet]) -> Sampled:
        """Profile the workload that the candidate has just been timed on, with sets it has not
        seen either: on known ones it could hide whose code does the work."""
        sampler = self._candidate.sampler
        if sampler is None:
            return Sampled((), 0.0)
        most = min(self._candidate.capacity, _PROFILE_CALLS)
        deadline = time.monotonic() + _PROFILE_SECONDS
        used, calls = 0.0, 0
        while True:
            self._candidate.bind(list(islice(sets, most)))
            batch = self._candidate.run(watch=sampler)
            used, calls = used + batch.windows.run_cpu, calls + batch.calls
            if time.monotonic() > deadline:
                break
        pointers = sampler.drain()
        self._pointers += pointers
        return Sampled(self._attribute(pointers), used / calls)

    def kernels(self) -> tuple[KernelShare, ...]:
        """Shares over all workloads."""
        return self._attribute(self._pointers)

    def _attribute(self, pointers: list[int]) -> tuple[KernelShare, ...]:
        try:
            maps = read_maps(self._candidate.child.pid)
        except OSError:
            raise ChildFailed("died", "gone before its time could be attributed") from None
        return attribute(pointers, maps, lambda path: path.startswith(self._authored))


def summarise(
    task: Task,
    measurements: dict[str, Measurement],
    options: Options,
    candidate: str,
    place: Place,
    plain: Mapping[str, Measurement] = MappingProxyType({}),
) -> tuple[Timing, Reason | None]:
    """Per workload and overall; `TOO_NOISY` where the overall interval is too wide to be of use.

    `plain` holds the plain calls of workloads whose calls were timed as replays.
    """
    weights = [workload.weight for workload in task.workloads]
    overall = []
    for baseline in options.baselines:
        parts = [
            measurements[w.name].log_ratio(baseline, candidate).allowing_for_luck()
            for w in task.workloads
        ]
        speedup = combine(parts, weights).interval()
        overall.append(BaselineSpeedup(baseline=baseline, speedup=speedup))
    workloads = tuple(
        _workload_timing(w, measurements[w.name], options, candidate, plain.get(w.name))
        for w in task.workloads
    )
    timing = Timing(speedups=tuple(overall), workloads=workloads, cores=tuple(sorted(place.timed)))
    noisy = any(s.speedup.half_width > options.sampling.unstable_above for s in overall)
    return timing, Reason.TOO_NOISY if noisy else None


def _workload_timing(
    workload: Workload,
    measurement: Measurement,
    options: Options,
    candidate: str,
    plain: Measurement | None,
) -> WorkloadTiming:
    mine = measurement.samples[candidate]
    return WorkloadTiming(
        workload=workload.name,
        weight=workload.weight,
        way="plain" if plain is None else "replay",
        plain_p50=None if plain is None else statistics.median(plain.samples[candidate].seconds),
        candidate=distribution(mine.seconds),
        baselines=tuple(
            BaselineTiming(
                baseline=baseline,
                speedup=_speedup(measurement, baseline, candidate),
                seconds=distribution(measurement.samples[baseline].seconds),
                plain_speedup=None if plain is None else _speedup(plain, baseline, candidate),
            )
            for baseline in options.baselines
        ),
        rounds=measurement.rounds,
        calls=measurement.calls,
        inner_p50=statistics.median(mine.inner),
    )


def _speedup(measurement: Measurement, baseline: str, candidate: str) -> Interval:
    return measurement.log_ratio(baseline, candidate).allowing_for_luck().interval()
