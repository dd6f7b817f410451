"""Other baselines timed beside eager PyTorch on a GPU, each of them once."""

from __future__ import annotations

from kernel_smith.evaluation.judge.evidence.device import describe_device
from kernel_smith.evaluation.judge.inputs.reference import InputSet
from kernel_smith.evaluation.judge.platform.batch import Batch
from kernel_smith.evaluation.judge.platform.bench import Bench
from kernel_smith.evaluation.judge.platform.device_participant import DeviceParticipant
from kernel_smith.evaluation.judge.timing.baseline_ratios import (
    BaselineRatio,
    BaselineRatios,
    ratio_of_contest,
)
from kernel_smith.evaluation.judge.timing.device_clock import Contest, time_both_ways
from kernel_smith.records import Baseline, Sampling, Workload


class Trusting:
    """Nobody suspects a baseline of cheating."""

    def __call__(self, sets: list[InputSet], batch: Batch) -> None: ...

    def take_hidden_check(self, like: InputSet) -> InputSet | None:
        return None


def compile_baseline(bench: Bench[DeviceParticipant], workload: Workload, name: Baseline) -> None:
    """Have a baseline ready to be timed, unless its ratio is known."""
    if _ratios(bench).get(workload, name) is not None:
        return
    participant = bench.baseline(name)
    bench.enter(participant, workload, 1, timed=True)
    participant.bind([bench.prepare(workload).pool.author.draw()])
    participant.run()
    bench.leave(participant, workload)


def ratio_to_eager(
    bench: Bench[DeviceParticipant], workload: Workload, name: Baseline, sampling: Sampling
) -> BaselineRatio:
    """How a baseline compares with eager: from the cache, or timed now."""
    ratios = _ratios(bench)
    known = ratios.get(workload, name)
    if known is None:
        sets = bench.prepare(workload).pool.timing_sets()
        contest = Contest(bench, workload, bench.baseline(name), sets, Trusting())
        timed = time_both_ways(contest, sampling)
        known = ratio_of_contest(name, timed.measurement, timed.plain)
        ratios.put(workload, name, known)
    return known


def _ratios(bench: Bench[DeviceParticipant]) -> BaselineRatios:
    return BaselineRatios(bench.task, describe_device())
