"""One evaluation on a GPU: the same gates, with the device's own memory, clock and evidence."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from kernel_smith.evaluation.judge.bench import Bench
from kernel_smith.evaluation.judge.clock import Measurement, Pace, batch_length
from kernel_smith.evaluation.judge.correctness import Checked, TimedVerifier
from kernel_smith.evaluation.judge.device.bench import DeviceBench
from kernel_smith.evaluation.judge.device.ceilings import ceilings
from kernel_smith.evaluation.judge.device.clock import Contest, Way, measure
from kernel_smith.evaluation.judge.device.describe import describe_device
from kernel_smith.evaluation.judge.device.foundry import Foundry
from kernel_smith.evaluation.judge.device.kernels import summarise_kernels
from kernel_smith.evaluation.judge.device.participant import DeviceParticipant
from kernel_smith.evaluation.judge.device.quiet import check_idle
from kernel_smith.evaluation.judge.device.roofline import roofline
from kernel_smith.evaluation.judge.device.telemetry import TelemetrySampler
from kernel_smith.evaluation.judge.integrity import check_physics, check_processor_use
from kernel_smith.evaluation.judge.lane import exclusive
from kernel_smith.evaluation.judge.participant import Participant
from kernel_smith.evaluation.judge.reference import InputSet
from kernel_smith.evaluation.judge.rejection import Rejected
from kernel_smith.evaluation.judge.session import CANDIDATE, Session
from kernel_smith.evaluation.judge.workshop import Maker
from kernel_smith.records import (
    Accuracy,
    Ceilings,
    DeviceKernel,
    Evaluation,
    Precision,
    Reason,
    Roofline,
    Sampling,
    Workload,
)

_WORTH_LENGTHENING = 1.5
_PLAIN_CALLS = 24
_PLAIN = Sampling(min_rounds=4, max_rounds=4, max_seconds=0.5)
_PACE = Pace(wanted=3e-3, shortest=2e-3)
_PROFILED_CALLS = 4
_CACHE_FASTER_THAN_MEMORY = 4.0  # results may stay in the cache for as long as they are timed


@dataclasses.dataclass
class _Timed:
    """One workload."""

    way: Way
    measurement: Measurement
    plain: Measurement | None
    kernels: tuple[DeviceKernel, ...]


class DeviceSession(Session):
    on_device = True

    def run(self) -> Evaluation:
        try:
            return super().run()
        except torch.OutOfMemoryError:
            if self._armed is None:
                raise
            message = "the device's memory was exhausted while the candidate ran"
            rejected = Rejected(Reason.MEMORY_LIMIT, message)
            return self._record(reason=rejected.reason, rejected=rejected)

    def _maker(self, tree: ast.Module) -> Maker:
        return Foundry(self._nursery, self._place, self._options.limits)

    def _launch(self, objects: Path, provide: Callable[[Any], dict[str, Any]]) -> Participant:
        child = self._nursery.start(
            self._place, self._options.limits, readable=(objects,), gpu=True
        )
        child.provide = provide
        return DeviceParticipant(CANDIDATE, child, self._options.limits)

    def _load(self, participant: Participant) -> None:
        participant.load(
            self._candidate.source,
            self._candidate.name,
            "ModelNew",
            len(self._place.timed),
            tf32=self._task.precision is not Precision.STRICT,
            confined=True,
            disarmed=participant is self._disarmed,
        )

    def _time(
        self,
        bench: Bench,
        candidate: Participant,
        checked: dict[str, Checked],
        accuracy: Accuracy,
    ) -> Evaluation:
        assert isinstance(bench, DeviceBench) and isinstance(candidate, DeviceParticipant)
        device = describe_device()
        limits = ceilings(device)
        with exclusive(self._place.timed), self._step("timing"), TelemetrySampler() as sampler:
            timed = {
                workload.name: self._time_workload(bench, candidate, workload, limits)
                for workload in self._task.workloads
            }
        measurements = {name: one.measurement for name, one in timed.items()}
        plain = {name: one.plain for name, one in timed.items() if one.plain is not None}
        largest = max(self._task.workloads, key=lambda w: bench.work(w).traffic_bytes)
        return self._record_timing(
            measurements,
            plain,
            accuracy=accuracy,
            device=device,
            device_kernels=timed[largest.name].kernels,
            rooflines=tuple(
                self._roofline(bench, workload, timed[workload.name], limits)
                for workload in self._task.workloads
            ),
            ceilings=limits,
            telemetry=sampler.telemetry(),
        )

    def _time_workload(
        self, bench: DeviceBench, candidate: DeviceParticipant, workload: Workload, limits: Ceilings
    ) -> _Timed:
        self._progress(f"timing {workload.name}")
        prepared = bench.prepare(workload)
        sets = prepared.stock.timing_sets()
        length = batch_length(prepared.seconds, prepared.seconds, prepared.capacity, _PACE)
        with self._explaining(loading=False):
            contest = self._enter(bench, candidate, workload, sets, length)
            refusal = contest.capture()
            if refusal is None:
                contest = self._lengthen(bench, workload, contest)
            else:
                self._notes.append(f"{workload.name}: no CUDA graph, so timed plainly: {refusal}")
            way: Way = "replay" if refusal is None else "plain"
            measurement = measure(contest, self._options.sampling, way)
            plain = None
            if refusal is None:
                shorter = dataclasses.replace(contest, length=min(contest.length, _PLAIN_CALLS))
                plain = measure(shorter, _PLAIN, "plain")
            self._check_integrity(bench, contest, measurement, workload, limits)
            kernels = self._profile(candidate, sets, workload)
        return _Timed(way, measurement, plain, kernels)

    def _enter(
        self,
        bench: DeviceBench,
        candidate: DeviceParticipant,
        workload: Workload,
        sets: Iterator[InputSet],
        length: int,
    ) -> Contest:
        prepared = bench.enter(candidate, workload, length)
        baselines = bench.baselines(workload, self._options, length)
        verifier = TimedVerifier(
            candidate,
            baselines[0],
            prepared.stock,
            prepared.described,
            lambda inputs: self._ask_fresh_process(bench, workload, inputs),
        )
        opponents = [one for one in baselines if isinstance(one, DeviceParticipant)]
        return Contest(candidate, opponents, sets, length, bench.quiet, verifier)

    def _lengthen(self, bench: DeviceBench, workload: Workload, contest: Contest) -> Contest:
        """More calls per batch, where the candidate is so fast that batches would be too short."""
        prepared = bench.prepare(workload)
        contest.round("replay")
        seconds = max(contest.candidate.device_seconds(), 1e-7)
        length = batch_length(prepared.seconds, seconds, prepared.capacity, _PACE)
        if length < _WORTH_LENGTHENING * contest.length:
            return contest
        longer = self._enter(bench, contest.candidate, workload, contest.sets, length)
        longer.capture()
        return longer

    def _check_integrity(
        self,
        bench: DeviceBench,
        contest: Contest,
        measurement: Measurement,
        workload: Workload,
        limits: Ceilings,
    ) -> None:
        mine = measurement.samples[CANDIDATE]
        theirs = measurement.samples[contest.baselines[0].name]
        check_idle(contest.busy)
        check_processor_use(mine.windows, theirs.windows, len(self._place.timed))
        middle = sorted(mine.seconds)[len(mine.seconds) // 2]
        fastest = _CACHE_FASTER_THAN_MEMORY * limits.copy_bytes_per_second
        check_physics(middle, bench.work(workload).floor_bytes, fastest)

    def _profile(
        self, candidate: DeviceParticipant, sets: Iterator[InputSet], workload: Workload
    ) -> tuple[DeviceKernel, ...]:
        count = min(candidate.capacity, _PROFILED_CALLS)
        candidate.bind([next(sets) for _ in range(count)])
        try:
            return summarise_kernels(candidate.profile(), count)
        except ValueError as error:
            self._notes.append(f"{workload.name}: no list of kernels: {error}")
            return ()

    def _roofline(
        self, bench: DeviceBench, workload: Workload, timed: _Timed, limits: Ceilings
    ) -> Roofline:
        samples = timed.measurement.samples[CANDIDATE].seconds
        middle = sorted(samples)[len(samples) // 2]
        launches = sum(kernel.launches for kernel in timed.kernels) or 1.0
        return roofline(bench.work(workload), limits, middle, workload.name, launches)
