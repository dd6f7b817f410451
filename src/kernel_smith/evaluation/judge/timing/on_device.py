"""A candidate timed on a GPU beside eager PyTorch, its kernels, and how good their times are."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from kernel_smith.evaluation.judge.evidence.ceilings import ceilings
from kernel_smith.evaluation.judge.evidence.device import describe_device
from kernel_smith.evaluation.judge.evidence.kernels import Compiled, summarise_kernels
from kernel_smith.evaluation.judge.evidence.roofline import roofline
from kernel_smith.evaluation.judge.evidence.telemetry import TelemetrySampler
from kernel_smith.evaluation.judge.platform import device_state
from kernel_smith.evaluation.judge.platform.base import Timings
from kernel_smith.evaluation.judge.platform.bench import COMPILED, Bench
from kernel_smith.evaluation.judge.platform.device_participant import DeviceParticipant
from kernel_smith.evaluation.judge.platform.participant import CANDIDATE
from kernel_smith.evaluation.judge.platform.quiet import check_idle, check_joined
from kernel_smith.evaluation.judge.processes.child import ChildFailed
from kernel_smith.evaluation.judge.rejection import Rejected
from kernel_smith.evaluation.judge.timing.baseline_contests import compile_baseline, ratio_to_eager
from kernel_smith.evaluation.judge.timing.baseline_ratios import (
    EAGER,
    GRAPH,
    BaselineRatios,
    against_graph,
    through_eager,
)
from kernel_smith.evaluation.judge.timing.device_clock import Contest, Timed, time_both_ways
from kernel_smith.evaluation.judge.timing.host_clock import Measurement
from kernel_smith.evaluation.judge.timing.integrity import check_physics
from kernel_smith.evaluation.judge.timing.library_time import (
    check_library_kernels,
    check_library_seconds,
    seconds_without_kernels,
)
from kernel_smith.evaluation.judge.timing.outcome import Against, Outcome
from kernel_smith.evaluation.judge.timing.rival import Rival
from kernel_smith.evaluation.judge.timing.statistics import distribution
from kernel_smith.evaluation.judge.timing.verifier import TimedVerifier
from kernel_smith.records import Ceilings, DeviceKernel, Reason, Roofline, Workload

if TYPE_CHECKING:
    from kernel_smith.evaluation.judge.contestant import Contestant

_PROFILED_CALLS = 4
_REGISTER_BYTES = 4
_LONG_TO_PROFILE = 0.005  # seconds: time for a thousand kernels
_CACHE_FASTER_THAN_MEMORY = 4.0  # results may stay in the cache for as long as they are timed


class DeviceTiming:
    """One candidate's."""

    def __init__(
        self,
        bench: Bench[DeviceParticipant],
        contestant: Contestant[DeviceParticipant],
        rival: Rival[DeviceParticipant] | None,
    ) -> None:
        self._bench = bench
        self._contestant = contestant
        self._candidate = contestant.participant
        self._rival = None if rival is None else rival.participant
        self._task = contestant.task
        self._options = contestant.options
        self._journal = contestant.journal

    def run(self) -> Timings:
        device = describe_device()
        self._prepare()
        sampler = TelemetrySampler()
        with self._bench.platform.alone(), self._journal.step("timing"), sampler:
            limits = ceilings(device)
            outcomes = {w.name: self._time(w, limits) for w in self._task.workloads}
            if not self._task.library_calls:
                self._check_library(outcomes)
        kernels = self._profile() if self._options.profile else ()
        evidence = {
            "device": device,
            "device_kernels": kernels,
            "rooflines": tuple(
                self._roofline(workload, outcomes[workload.name], kernels, limits)
                for workload in self._task.workloads
            ),
            "ceilings": limits,
            "telemetry": sampler.telemetry(),
            "known_baselines": BaselineRatios(self._task, device).known(COMPILED),
        }
        return Timings(outcomes, evidence)

    def _prepare(self) -> None:
        """Before the device is needed alone: to compile takes longer than all the rest."""
        names = [name for name in self._options.baselines if name in COMPILED]
        with self._journal.step("baselines"):
            for workload in self._task.workloads:
                self._bench.work(workload)
                for name in names:
                    self._journal.say(f"compiling {workload.name}: {name}")
                    compile_baseline(self._bench, workload, name)

    def _time(self, workload: Workload, limits: Ceilings) -> Outcome:
        contestant = self._contestant
        self._journal.say(f"timing {workload.name}")
        with contestant.explaining(loading=False):
            contest = self._contest(workload)
            timed = time_both_ways(contest, self._options.sampling)
            self._check_integrity(contest, timed.measurement, workload, limits)
        aside, counted = timed.measurement.set_aside, timed.measurement.rounds
        if aside > counted:
            self._journal.note(
                f"{workload.name}: {aside} rounds of timing were interrupted by other programs, "
                f"and {counted} count"
            )
        if timed.refusal is not None:
            check_joined(timed.refusal)
            with contestant.explaining(loading=False):
                self._check_followed(workload)
            why = timed.refusal.partition("\n")[0]  # CUDA goes on with general advice
            self._journal.note(f"{workload.name}: no CUDA graph, timed plainly: {why}")
        with contestant.explaining(loading=False):
            for participant in (self._candidate, self._rival):
                if participant is not None:
                    self._bench.leave(participant, workload)
        outcome = self._outcome(workload, timed)
        self._bench.dismiss(workload)
        return outcome

    def _contest(self, workload: Workload) -> Contest:
        bench, prepared = self._bench, self._bench.prepare(workload)
        if prepared.pool.is_large:
            bench.reference.give_memory_back()
        verifier = TimedVerifier(
            self._candidate,
            bench.eager(),
            prepared.pool,
            prepared.described,
            lambda inputs: self._contestant.ask_fresh_process(bench, workload, inputs),
        )
        sets = prepared.pool.timing_sets()
        return Contest(bench, workload, self._candidate, sets, verifier, self._rival)

    def _check_integrity(
        self, contest: Contest, measurement: Measurement, workload: Workload, limits: Ceilings
    ) -> None:
        check_idle(contest.busy)
        middle = statistics.median(measurement.samples[CANDIDATE].seconds)
        fastest = _CACHE_FASTER_THAN_MEMORY * limits.copy_bytes_per_second
        check_physics(middle, self._bench.work(workload).floor_bytes, fastest, measurement.doubt)

    def _check_followed(self, workload: Workload) -> None:
        """Is a result there for whoever uses it next? A capture would have shown it."""
        candidate, author = self._candidate, self._bench.prepare(workload).pool.author
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
                f"workload {workload.name}: a kernel that follows on the current stream does not "
                "find the result",
            )

    def _outcome(self, workload: Workload, timed: Timed) -> Outcome:
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
                self._journal.say(f"timing {workload.name}: {name}")
                known = ratio_to_eager(self._bench, workload, name, self._options.sampling)
                against[name] = through_eager(direct, known)
        p50 = None if plain is None else statistics.median(plain.samples[CANDIDATE].seconds)
        return Outcome(measurement, CANDIDATE, against, p50, replayed=timed.refusal is None)

    def _check_library(self, outcomes: Mapping[str, Outcome]) -> None:
        """For tasks that forbid it: is the device busy although the kernels do nothing?"""
        contestant = self._contestant
        timed = self._candidate if contestant.leaves_kernels_out else contestant.disarmed
        assert timed is not None
        for workload in self._task.workloads:
            samples = outcomes[workload.name].measurement.samples[CANDIDATE]
            check_library_seconds(
                partial(seconds_without_kernels, self._bench, timed, workload),
                statistics.median(samples.seconds),
            )

    def _profile(self) -> tuple[DeviceKernel, ...]:
        with self._journal.step("profile"), self._contestant.explaining(loading=False):
            kernels = self._profile_largest()
        if not self._task.library_calls:
            check_library_kernels(kernels)
        return kernels

    def _profile_largest(self) -> tuple[DeviceKernel, ...]:
        """The kernels of the workload with most to do."""
        bench, candidate = self._bench, self._candidate
        workload = max(self._task.workloads, key=lambda w: bench.work(w).traffic_bytes)
        prepared = bench.prepare(workload)
        # Of a call that takes long, or launches thousands of kernels, one says enough.
        is_long = prepared.pool.is_large or prepared.seconds > _LONG_TO_PROFILE
        most = 1 if is_long else _PROFILED_CALLS
        calls = min(most, prepared.capacity)
        sets = bench.enter(candidate, workload, calls, timed=True).pool.timing_sets()
        candidate.bind(list(islice(sets, calls)))
        try:
            return summarise_kernels(candidate.profile(), calls, self._as_compiled())
        except ValueError as error:
            self._journal.note(f"{workload.name}: no list of kernels: {error}")
            return ()
        except ChildFailed as failure:  # thousands of launches fill the disk that it has
            if not self._task.library_calls or failure.kind != "exception":
                raise
            self._journal.note(f"{workload.name}: no list of kernels: {failure.message[:200]}")
            return ()

    def _as_compiled(self) -> dict[str, Compiled]:
        """What the compiler said of each kernel, by its name."""
        return {
            kernel.name: Compiled(
                kernel.registers,
                None if kernel.spill_bytes is None else kernel.spill_bytes // _REGISTER_BYTES,
                kernel.shared_bytes,
            )
            for kernel in self._contestant.compiled_kernels()
        }

    def _roofline(
        self,
        workload: Workload,
        outcome: Outcome,
        kernels: tuple[DeviceKernel, ...],
        limits: Ceilings,
    ) -> Roofline:
        middle = statistics.median(outcome.measurement.samples[CANDIDATE].seconds)
        launches = sum(kernel.launches for kernel in kernels) or 1.0
        return roofline(self._bench.work(workload), limits, middle, workload.name, launches)
