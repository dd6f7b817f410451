"""One evaluation on a GPU: the same gates, with the device's own memory, clock and evidence."""

from __future__ import annotations

import ast
import contextlib
import statistics
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from kernel_smith.errors import MissingPrerequisite
from kernel_smith.evaluation.judge.compiling.device_source import DeviceSourceCompiler
from kernel_smith.evaluation.judge.compiling.source import Folders, Maker
from kernel_smith.evaluation.judge.compiling.triton import TritonCompiler
from kernel_smith.evaluation.judge.correctness import Checked
from kernel_smith.evaluation.judge.evidence.ceilings import ceilings
from kernel_smith.evaluation.judge.evidence.device import describe_device
from kernel_smith.evaluation.judge.evidence.kernels import summarise_kernels
from kernel_smith.evaluation.judge.evidence.roofline import roofline
from kernel_smith.evaluation.judge.evidence.telemetry import TelemetrySampler
from kernel_smith.evaluation.judge.pipeline import CANDIDATE, Session
from kernel_smith.evaluation.judge.platform import device_state
from kernel_smith.evaluation.judge.platform.bench import COMPILED, Bench
from kernel_smith.evaluation.judge.platform.device_bench import DeviceBench
from kernel_smith.evaluation.judge.platform.device_participant import DeviceParticipant
from kernel_smith.evaluation.judge.platform.participant import Participant
from kernel_smith.evaluation.judge.platform.quiet import check_idle, check_joined
from kernel_smith.evaluation.judge.platform.spares import Spare, Spares
from kernel_smith.evaluation.judge.processes.child import Child, ChildFailed, Interrupted
from kernel_smith.evaluation.judge.rejection import Rejected
from kernel_smith.evaluation.judge.timing.device_clock import Contest, Timed, time_both_ways
from kernel_smith.evaluation.judge.timing.host_clock import Measurement
from kernel_smith.evaluation.judge.timing.integrity import check_physics
from kernel_smith.evaluation.judge.timing.library_time import (
    check_library_kernels,
    check_library_seconds,
    seconds_without_kernels,
)
from kernel_smith.evaluation.judge.timing.outcome import Against, Outcome
from kernel_smith.evaluation.judge.timing.standings import (
    EAGER,
    GRAPH,
    against_graph,
    through_eager,
)
from kernel_smith.evaluation.judge.timing.statistics import distribution
from kernel_smith.evaluation.judge.timing.verifier import TimedVerifier
from kernel_smith.evaluation.sandbox.device_memory import DeviceError
from kernel_smith.inline.gpu import vendor_of_torch
from kernel_smith.records import (
    Accuracy,
    Ceilings,
    DeviceKernel,
    Evaluation,
    Precision,
    Reason,
    Roofline,
    Workload,
)

_SHARING = frozenset({"task", "load", "correctness", "kernels", "baselines", "profile"})
_PROFILED_CALLS = 4
_MUCH_MEMORY = 0.25  # of the device
_SHARE_OF_MEMORY = 0.5  # the same, for a candidate: others use it as well
_CACHE_FASTER_THAN_MEMORY = 4.0  # results may stay in the cache for as long as they are timed


class DeviceFull(Interrupted):
    """The judge or the candidate got no memory on the device.

    `by_candidate`: was it the candidate that had taken it? `verdict`: what is said of the candidate
    if the same happens again, although there is memory now.
    """

    def __init__(
        self, message: str, *, by_candidate: bool, verdict: Evaluation | None = None
    ) -> None:
        super().__init__(message)
        self.by_candidate = by_candidate
        self.verdict = verdict


class DeviceSession(Session):
    def __init__(self, spares: Spares, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.route = self._backend.route(on_device=True)
        self._spares = spares
        self._taken: list[Spare] = []
        self._launched: list[Child] = []

    @property
    def keeps_disarmed(self) -> bool:
        """For the time of calls without kernels, where nothing else may take any."""
        return not self._task.library_calls

    def _check_options(self) -> None:
        """Every baseline is there, but not every Triton."""
        vendor = vendor_of_torch()
        if self._candidate.backend == "triton" and vendor != "cuda":
            raise MissingPrerequisite(
                f"Triton kernels are judged on NVIDIA GPUs, and this torch is for {vendor}",
                hint=f"write them for --backend {vendor}, or add --interpret to check them",
            )

    def run(self, beside: Session | None = None) -> Evaluation:
        """Memory that ran out may be the candidate's doing, or that of other judges."""
        try:
            evaluation = super().run(beside)
        except (torch.OutOfMemoryError, DeviceError) as error:
            raise DeviceFull(str(error), by_candidate=self._held_much()) from error
        if evaluation.reason is Reason.MEMORY_LIMIT and not self._held_much():
            free, total = torch.cuda.mem_get_info()
            scarce = free < _MUCH_MEMORY * total
            verdict = None if scarce else evaluation
            raise DeviceFull(evaluation.message, by_candidate=False, verdict=verdict)
        return evaluation

    def _held_much(self) -> bool:
        """End the candidate's processes: is a good part of the device's memory free then?"""
        before, total = torch.cuda.mem_get_info()
        for participant in (self._armed, self._disarmed):
            if participant is not None and not participant.ended:
                self._end(participant)
                participant.child.exit_report()
        freed = torch.cuda.mem_get_info()[0] - before
        return freed > _MUCH_MEMORY * total

    def _check(self, bench: Bench, candidate: Participant) -> dict[str, Checked]:
        self._spares.prepare(self._options.limits)
        checked = super()._check(bench, candidate)
        assert isinstance(bench, DeviceBench)
        for workload in self._task.workloads:
            bench.work(workload)  # known before the device is needed alone
        return checked

    def close(self) -> None:
        """Most candidates that fail do so before the process without kernels is needed: it serves
        the next one."""
        idle = [spare.child for spare in self._taken if spare.child not in self._launched]
        for participant in (self._armed, self._disarmed):
            if isinstance(participant, DeviceParticipant) and participant.is_unused:
                participant.close()
                idle.append(participant.child)
        super().close()
        for spare in self._taken:
            if spare.child in idle:
                self._spares.take_back(spare)
            else:
                self._spares.forget(spare)
        self._taken = []
        device_state.give_memory_back()

    @contextlib.contextmanager
    def _step(self, name: str) -> Iterator[None]:
        """Whatever touches the device takes turns with other judges."""
        with contextlib.ExitStack() as stack:
            if name in _SHARING:
                stack.enter_context(device_state.turns().sharing())
                stack.callback(device_state.make_room)
            stack.enter_context(super()._step(name))
            yield

    def _maker(self, tree: ast.Module) -> Maker:
        limits = self._options.limits
        self._taken = [self._spares.take(limits) for _ in range(2)]
        armed, disarmed = (spare.objects for spare in self._taken)
        folders = Folders(armed, disarmed)
        if self._backend.in_process:
            return TritonCompiler(
                self._processes, self._place, limits, device_state.turns(), folders
            )
        return DeviceSourceCompiler(
            self._candidate,
            tree,
            self._backend,
            self._processes,
            self._place,
            limits,
            self.route,
            folders,
        )

    def _launch(self, objects: Path, provide: Callable[[Any], dict[str, Any]]) -> Participant:
        child = self._waiting_at(objects)
        if child is None:
            child = self._spares.start_beside(objects, self._options.limits)
        child.provide = provide
        return DeviceParticipant(self.role, child, self._options.limits)

    def _waiting_at(self, objects: Path) -> Child | None:
        """The process that waits for these objects, the first time that it is asked for."""
        for spare in self._taken:
            if spare.objects == objects and spare.child not in self._launched:
                self._launched.append(spare.child)
                return spare.child
        return None

    def _load(self, participant: Participant) -> None:
        participant.load(
            self._candidate.source,
            self._candidate.name,
            "ModelNew",
            len(self._place.timed),
            tf32=self._task.precision is not Precision.STRICT,
            confined=True,
            disarmed=participant is self._disarmed,
            memory_share=_SHARE_OF_MEMORY,
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
        self._compile_baselines(bench)
        with device_state.turns().alone(), self._step("timing"), TelemetrySampler() as sampler:
            limits = ceilings(device)
            outcomes = {
                workload.name: self._time_workload(bench, candidate, workload, limits)
                for workload in self._task.workloads
            }
            if not self._task.library_calls:
                self._check_library(bench, outcomes)
        kernels: tuple[DeviceKernel, ...] = ()
        if self._options.profile:
            with self._step("profile"), self._explaining(loading=False):
                kernels = self._profile(bench, candidate)
            if not self._task.library_calls:
                check_library_kernels(kernels)
        return self._record_timing(
            outcomes,
            accuracy=accuracy,
            device=device,
            device_kernels=kernels,
            rooflines=tuple(
                _roofline(bench, workload, outcomes[workload.name], kernels, limits)
                for workload in self._task.workloads
            ),
            ceilings=limits,
            telemetry=sampler.telemetry(),
        )

    def _compile_baselines(self, bench: DeviceBench) -> None:
        """Before the device is needed alone: to compile takes longer than all the rest."""
        names = [name for name in self._options.baselines if name in COMPILED]
        if not names:
            return
        with self._step("baselines"):
            for workload in self._task.workloads:
                for name in names:
                    self._progress(f"compiling {workload.name}: {name}")
                    bench.compile(workload, name)

    def _time_workload(
        self, bench: DeviceBench, candidate: DeviceParticipant, workload: Workload, limits: Ceilings
    ) -> Outcome:
        self._progress(f"timing {workload.name}")
        with self._explaining(loading=False):
            contest = self._contest(bench, candidate, workload)
            timed = time_both_ways(contest, self._options.sampling)
            self._check_integrity(bench, contest, timed.measurement, workload, limits)
        if timed.refusal is not None:
            check_joined(timed.refusal)
            with self._explaining(loading=False):
                _check_followed(bench, candidate, workload)
            why = timed.refusal.partition("\n")[0]  # CUDA goes on with general advice
            self._notes.append(f"{workload.name}: no CUDA graph, timed plainly: {why}")
        rivals = [] if self._rival is None else [self._rival.participant]
        with self._explaining(loading=False):
            for participant in (candidate, *rivals):
                bench.leave(participant, workload)
        outcome = self._outcome(bench, workload, timed)
        bench.dismiss(workload)
        return outcome

    def _outcome(self, bench: DeviceBench, workload: Workload, timed: Timed) -> Outcome:
        """The candidate against eager, and through it against the other baselines."""
        measurement, plain = timed.measurement, timed.plain
        direct = Against(
            measurement.log_ratio(EAGER, CANDIDATE),
            distribution(measurement.samples[EAGER].seconds),
            None if plain is None else plain.log_ratio(EAGER, CANDIDATE),
        )
        against: dict[str, Against] = {EAGER: direct}
        for name in self._options.baselines:
            if name == GRAPH:
                against[name] = (
                    direct if plain is None else against_graph(direct, measurement, plain)
                )
            elif name != EAGER:
                self._progress(f"timing {workload.name}: {name}")
                known = bench.standing(workload, name, self._options.sampling)
                against[name] = through_eager(direct, known)
        p50 = None if plain is None else statistics.median(plain.samples[CANDIDATE].seconds)
        return Outcome(measurement, CANDIDATE, against, p50)

    def _check_library(self, bench: DeviceBench, outcomes: Mapping[str, Outcome]) -> None:
        """For tasks that forbid it: is the device busy although the kernels do nothing?"""
        disarmed = self._disarmed
        assert isinstance(disarmed, DeviceParticipant)
        for workload in self._task.workloads:
            samples = outcomes[workload.name].measurement.samples[CANDIDATE]
            check_library_seconds(
                partial(seconds_without_kernels, bench, disarmed, workload),
                statistics.median(samples.seconds),
            )

    def _contest(
        self, bench: DeviceBench, candidate: DeviceParticipant, workload: Workload
    ) -> Contest:
        pool = bench.prepare(workload).pool
        verifier = TimedVerifier(
            candidate,
            bench.eager(),
            pool,
            bench.prepare(workload).described,
            lambda inputs: self._ask_fresh_process(bench, workload, inputs),
        )
        rival = None if self._rival is None else self._rival.participant
        assert rival is None or isinstance(rival, DeviceParticipant)
        return Contest(bench, workload, candidate, pool.timing_sets(), verifier, rival)

    def _check_integrity(
        self,
        bench: DeviceBench,
        contest: Contest,
        measurement: Measurement,
        workload: Workload,
        limits: Ceilings,
    ) -> None:
        check_idle(contest.busy)
        middle = statistics.median(measurement.samples[CANDIDATE].seconds)
        fastest = _CACHE_FASTER_THAN_MEMORY * limits.copy_bytes_per_second
        check_physics(middle, bench.work(workload).floor_bytes, fastest, measurement.doubt)

    def _profile(
        self, bench: DeviceBench, candidate: DeviceParticipant
    ) -> tuple[DeviceKernel, ...]:
        """The kernels of the workload with most to do."""
        workload = max(self._task.workloads, key=lambda w: bench.work(w).traffic_bytes)
        prepared = bench.prepare(workload)
        # Of a call that takes long, or launches thousands of kernels, one says enough.
        most = 1 if prepared.pool.is_large else _PROFILED_CALLS
        calls = min(most, prepared.capacity)
        sets = bench.enter(candidate, workload, calls, timed=True).pool.timing_sets()
        candidate.bind(list(islice(sets, calls)))
        try:
            return summarise_kernels(candidate.profile(), calls)
        except ValueError as error:
            self._notes.append(f"{workload.name}: no list of kernels: {error}")
            return ()
        except ChildFailed as failure:  # thousands of launches fill the disk that it has
            if not self._task.library_calls or failure.kind != "exception":
                raise
            self._notes.append(f"{workload.name}: no list of kernels: {failure.message[:200]}")
            return ()


def _check_followed(bench: DeviceBench, candidate: DeviceParticipant, workload: Workload) -> None:
    """Is a result there for whoever uses it next? A capture would have shown it."""
    author = bench.prepare(workload).pool.author
    inputs = author.draw()
    candidate.bind([inputs])
    with device_state.occupied():
        copied = candidate.copied_outputs()
    if author.agrees(copied, inputs):
        return
    candidate.bind([inputs])
    candidate.run()
    if author.agrees(candidate.outputs(0), inputs):
        raise Rejected(
            Reason.DEFERRED_WORK,
            f"workload {workload.name}: a kernel that follows on the current stream does not find "
            "the result",
        )


def _roofline(
    bench: DeviceBench,
    workload: Workload,
    outcome: Outcome,
    kernels: tuple[DeviceKernel, ...],
    limits: Ceilings,
) -> Roofline:
    middle = statistics.median(outcome.measurement.samples[CANDIDATE].seconds)
    launches = sum(kernel.launches for kernel in kernels) or 1.0
    return roofline(bench.work(workload), limits, middle, workload.name, launches)
