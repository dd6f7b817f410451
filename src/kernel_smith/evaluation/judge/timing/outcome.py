"""What timing showed: per workload the candidate against each baseline, and all of it together."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernel_smith.evaluation.judge.platform.participant import RIVAL
from kernel_smith.evaluation.judge.processes.pool import CoreSet
from kernel_smith.evaluation.judge.timing.host_clock import Measurement
from kernel_smith.evaluation.judge.timing.statistics import LogRatio, combine, distribution
from kernel_smith.records import (
    BaselineSpeedup,
    BaselineTiming,
    Beside,
    Distribution,
    Options,
    Reason,
    Task,
    Timing,
    Workload,
    WorkloadGain,
    WorkloadTiming,
)


@dataclass(frozen=True)
class Against:
    """The candidate against one baseline: the baseline's time over the candidate's."""

    ratio: LogRatio
    seconds: Distribution  # of the baseline
    plain: LogRatio | None = None  # the same for plain calls, where replays were timed


@dataclass(frozen=True)
class Outcome:
    """One workload."""

    measurement: Measurement
    candidate: str
    against: Mapping[str, Against]
    plain_p50: float | None = None
    """Of calls beside the replays, unless those are so long that launching costs nothing."""
    replayed: bool = False


def side_by_side(measurement: Measurement, candidate: str, baselines: Sequence[str]) -> Outcome:
    """All baselines took part in the measurement."""
    against = {
        name: Against(
            measurement.log_ratio(name, candidate), distribution(measurement.samples[name].seconds)
        )
        for name in baselines
    }
    return Outcome(measurement, candidate, against)


def summarise(
    task: Task, outcomes: Mapping[str, Outcome], options: Options, place: CoreSet
) -> tuple[Timing, Reason | None]:
    """`TOO_NOISY` where nobody can tell who is faster, and the interval is too wide to call them
    equal. One that leaves no doubt about that is of use however wide it is: its end says how much
    faster at least."""
    weights = [workload.weight for workload in task.workloads]
    overall = []
    for baseline in options.baselines:
        parts = [outcomes[w.name].against[baseline].ratio for w in task.workloads]
        speedup = combine(parts, weights).allowing_for_luck().interval()
        overall.append(BaselineSpeedup(baseline=baseline, speedup=speedup))
    workloads = tuple(_timing(w, outcomes[w.name], options) for w in task.workloads)
    timing = Timing(speedups=tuple(overall), workloads=workloads, cores=tuple(sorted(place.timed)))
    widest = options.sampling.unstable_above
    noisy = any(not s.speedup.decided and s.speedup.half_width > widest for s in overall)
    return timing, Reason.TOO_NOISY if noisy else None


def gains(task: Task, outcomes: Mapping[str, Outcome], rival: str) -> Beside:
    """The candidate against the one that took part beside it; `rival` is that one's hash."""
    measured = [outcomes[workload.name] for workload in task.workloads]
    ratios = [o.measurement.log_ratio(RIVAL, o.candidate) for o in measured]
    weights = [workload.weight for workload in task.workloads]
    return Beside(
        candidate_hash=rival,
        gain=combine(ratios, weights).allowing_for_luck().interval(),
        workloads=tuple(
            WorkloadGain(workload=workload.name, gain=ratio.allowing_for_luck().interval())
            for workload, ratio in zip(task.workloads, ratios, strict=True)
        ),
    )


def _timing(workload: Workload, outcome: Outcome, options: Options) -> WorkloadTiming:
    mine = outcome.measurement.samples[outcome.candidate]
    return WorkloadTiming(
        workload=workload.name,
        weight=workload.weight,
        way="replay" if outcome.replayed else "plain",
        plain_p50=outcome.plain_p50,
        candidate=distribution(mine.seconds),
        baselines=tuple(_baseline(name, outcome.against[name]) for name in options.baselines),
        rounds=outcome.measurement.rounds,
        calls=outcome.measurement.calls,
        inner_p50=statistics.median(mine.inner),
    )


def _baseline(name: str, against: Against) -> BaselineTiming:
    plain = against.plain
    return BaselineTiming(
        baseline=name,
        speedup=against.ratio.allowing_for_luck().interval(),
        seconds=against.seconds,
        plain_speedup=None if plain is None else plain.allowing_for_luck().interval(),
    )
