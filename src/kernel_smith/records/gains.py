"""How much faster one program is than another, from what was measured of them.

A gain that was taken side by side, in the same rounds, is preferred. Otherwise two speedups over
the same baseline are divided, and the interval is as wide as the two together allow. Whoever learns
from a gain takes what is certain of it (`Interval.certain`).
"""

from __future__ import annotations

from kernel_smith.records.evaluation import (
    Environment,
    Evaluation,
    Interval,
    Timing,
    WorkloadGain,
    WorkloadTiming,
)
from kernel_smith.records.training import StepGain
from kernel_smith.records.verdict import Stage

_NOTHING_SHOWN = 1.0  # neither better nor worse beyond doubt


def certain_gain(
    child: Evaluation, parent: Evaluation | None, beside: Interval | None = None
) -> float:
    """What is certain of a child's gain over its parent, or without one over the reference.

    0 for a child that failed. `beside`: the gain as it was timed in the same rounds, if it was.
    """
    if not child.ok:
        return _NOTHING_SHOWN if child.stage is Stage.UNSTABLE else 0.0
    if beside is not None and (parent is None or parent.ok):
        return beside.certain
    gain = _overall(child, parent)
    return gain.certain if gain is not None else _NOTHING_SHOWN


def _overall(child: Evaluation, parent: Evaluation | None) -> Interval | None:
    """What `gain_over` and `gain_over_reference` say of all workloads together."""
    if parent is None:
        return child.timing.speedup if child.timing is not None else None
    if not parent.ok or child.task_hash != parent.task_hash:
        return None
    return timed_beside(child, parent.candidate_hash) or _over_baseline(child, parent)


def timed_beside(child: Evaluation, other: str | None) -> Interval | None:
    """The gain over another program, by its hash, if it was timed in the same rounds."""
    beside = child.beside
    return beside.gain if beside is not None and beside.candidate_hash == other else None


def gain_over(child: Evaluation, other: Evaluation) -> StepGain | None:
    """The other's time over the child's; None where the two cannot be compared."""
    if not child.ok or not other.ok or child.task_hash != other.task_hash:
        return None
    return side_by_side(child, other) or _through_baseline(child, other)


def gain_over_reference(child: Evaluation) -> StepGain | None:
    """The speedup over the first baseline, which is eager PyTorch unless another was asked for."""
    timing = child.timing
    if not child.ok or timing is None:
        return None
    workloads = timing.workloads
    gains = (_workload_gain(each.workload, each.baselines[0].speedup) for each in workloads)
    # On a GPU other baselines were timed earlier, and are compared through eager.
    together = child.device is None or timing.speedups[0].baseline == "eager"
    return StepGain(
        overall=timing.speedup,
        workloads=tuple(gains),
        p99=min(each.baselines[0].seconds.p99 / each.candidate.p99 for each in workloads),
        side_by_side=together,
    )


def side_by_side(child: Evaluation, other: Evaluation) -> StepGain | None:
    """The gain as it was timed in the same rounds; None where it was not."""
    gain = timed_beside(child, other.candidate_hash)
    if gain is None or child.beside is None:
        return None
    pairs = _pairs(child, other)
    return StepGain(
        overall=gain,
        workloads=child.beside.workloads,
        p99=_tail(pairs) if pairs else None,
        side_by_side=True,
    )


def _over_baseline(child: Evaluation, other: Evaluation) -> Interval | None:
    if child.timing is None or other.timing is None or not _pairs(child, other):
        return None
    return child.timing.speedup.over(other.timing.speedup)


def _through_baseline(child: Evaluation, other: Evaluation) -> StepGain | None:
    overall, pairs = _over_baseline(child, other), _pairs(child, other)
    if overall is None or not pairs:
        return None
    gains = (
        _workload_gain(own.workload, own.baselines[0].speedup.over(its.baselines[0].speedup))
        for own, its in pairs
    )
    return StepGain(
        overall=overall,
        workloads=tuple(gains),
        p99=_tail(pairs),
        side_by_side=False,
    )


def _pairs(
    child: Evaluation, other: Evaluation
) -> list[tuple[WorkloadTiming, WorkloadTiming]] | None:
    """The two timings of each workload; None where they were not taken in the same way."""
    own, its = child.timing, other.timing
    if own is None or its is None or not _same_place(child, other) or _way(own) != _way(its):
        return None
    by_name = {each.workload: each for each in its.workloads}
    return [(each, by_name[each.workload]) for each in own.workloads]


def _same_place(child: Evaluation, other: Evaluation) -> bool:
    """Another processor or another torch makes another baseline."""
    return _place(child.environment) == _place(other.environment) and child.device == other.device


def _place(environment: Environment) -> tuple[str, ...]:
    return environment.machine, environment.processor, environment.torch


def _way(timing: Timing) -> tuple[str, set[tuple[str, float, str]]]:
    """Against what, on which workloads, and whether calls were replayed or made one by one."""
    workloads: set[tuple[str, float, str]] = {
        (each.workload, each.weight, each.way) for each in timing.workloads
    }
    return timing.speedups[0].baseline, workloads


def _tail(pairs: list[tuple[WorkloadTiming, WorkloadTiming]]) -> float:
    return min(its.candidate.p99 / own.candidate.p99 for own, its in pairs)


def _workload_gain(workload: str, gain: Interval) -> WorkloadGain:
    return WorkloadGain(workload=workload, gain=gain)
