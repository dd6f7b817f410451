"""One evaluation on the CPU. Kernels for a GPU are interpreted here, and never timed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.judge.compiling.source import Maker, SourceCompiler
from kernel_smith.evaluation.judge.correctness import Checked
from kernel_smith.evaluation.judge.evidence.environment import store_bytes_per_second
from kernel_smith.evaluation.judge.evidence.time_shares import Profile
from kernel_smith.evaluation.judge.inputs.interpreting import interpretable_part
from kernel_smith.evaluation.judge.inputs.reference import InputSet
from kernel_smith.evaluation.judge.pipeline import CANDIDATE, Session
from kernel_smith.evaluation.judge.platform.bench import COMPILED, Bench, Prepared
from kernel_smith.evaluation.judge.platform.participant import Participant
from kernel_smith.evaluation.judge.processes.core_lock import exclusive
from kernel_smith.evaluation.judge.timing.host_clock import Measurement, batch_length, measure
from kernel_smith.evaluation.judge.timing.integrity import (
    check_library_time,
    check_physics,
    check_processor_use,
)
from kernel_smith.evaluation.judge.timing.outcome import side_by_side
from kernel_smith.evaluation.judge.timing.rival import blame
from kernel_smith.evaluation.judge.timing.verifier import TimedVerifier
from kernel_smith.records import Accuracy, Evaluation, Task, Workload

_SHARED_BYTES = 256 << 20
_RESULTS = 3  # that are there at once: of this call, kept of an earlier one, and on the way


class HostSession(Session):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.route = self._backend.route(on_device=False)
        if self.interpreted:
            self._task = self._small_part(self._task)

    def _small_part(self, task: Task) -> Task:
        part = interpretable_part(task)
        left_out = [w.name for w in task.workloads if w not in part.workloads]
        if left_out:
            self._notes.append(f"too large for the interpreter: {', '.join(left_out)}")
        return part

    def _check_options(self) -> None:
        if "graph" in self._options.baselines:
            raise BadInput(
                "baseline graph: CUDA graphs need a GPU", hint="choose eager or compile instead"
            )

    def _maker(self, tree: ast.Module) -> Maker:
        options, place = self._options, self._place
        return SourceCompiler(
            self._candidate, tree, self._backend, self._processes, place, options.limits, self.route
        )

    def _launch(self, objects: Path, provide: Callable[[Any], dict[str, Any]]) -> Participant:
        # Large inputs and results are the task's doing, and not the candidate's.
        limits, call = self._options.limits, self._largest
        own = limits.memory_bytes + _RESULTS * call.outputs
        child = self._processes.start(
            self._place,
            limits.model_copy(update={"memory_bytes": own}),
            readable=(objects,),
            shared_bytes=_SHARED_BYTES + call.inputs + call.parameters,
        )
        child.provide = provide
        return Participant(self.role, child, limits)

    def _load(self, participant: Participant) -> None:
        candidate, threads = self._candidate, len(self._place.timed)
        participant.load(
            candidate.source,
            candidate.name,
            "ModelNew",
            threads,
            interpreted=self.interpreted and self._backend.in_process,
            disarmed=participant is self._disarmed,
        )

    def _time(
        self,
        bench: Bench,
        candidate: Participant,
        checked: dict[str, Checked],
        accuracy: Accuracy,
    ) -> Evaluation:
        compiler = self._compiler
        assert compiler is not None
        profile = Profile(candidate, str(compiler.armed))
        with exclusive(self._place.timed), self._step("timing"):
            measurements = self._measure(bench, candidate, checked, profile)
            with self._explaining(loading=False):
                kernels = profile.kernels()
        if candidate.not_sampled:
            self._notes.append(f"no time shares by module: {candidate.not_sampled}")
        baselines = self._options.baselines
        outcomes = {
            name: side_by_side(measurement, CANDIDATE, baselines)
            for name, measurement in measurements.items()
        }
        return self._record_timing(outcomes, accuracy=accuracy, kernels=kernels)

    def _measure(
        self,
        bench: Bench,
        candidate: Participant,
        checked: dict[str, Checked],
        profile: Profile,
    ) -> dict[str, Measurement]:
        measurements = {}
        for workload in self._task.workloads:
            self._progress(f"timing {workload.name}")
            sets = bench.prepare(workload).pool.timing_sets()
            measurements[workload.name] = self._measure_workload(
                bench, candidate, workload, sets, checked[workload.name].seconds_per_call
            )
            with self._explaining(loading=False):
                sampled = profile.sample(sets)
            if not self._task.library_calls:
                check_library_time(sampled.shares, sampled.seconds_per_call)
            with self._explaining(loading=False):
                self._leave(bench, candidate, workload)
        return measurements

    def _leave(self, bench: Bench, candidate: Participant, workload: Workload) -> None:
        """A large workload gives its memory back before the next one takes its own."""
        rivals = [] if self._rival is None else [self._rival.participant]
        for participant in (candidate, *rivals):
            bench.leave(participant, workload)
        bench.dismiss(workload)

    def _measure_workload(
        self,
        bench: Bench,
        candidate: Participant,
        workload: Workload,
        sets: Iterator[InputSet],
        seconds: float,
    ) -> Measurement:
        prepared = bench.prepare(workload)
        length = self._batch_length(prepared, workload, seconds)
        with self._explaining(loading=False):
            bench.enter(candidate, workload, length, timed=True)
        if COMPILED.keys() & set(self._options.baselines):
            self._progress(f"timing {workload.name}: torch.compile")
        baselines = bench.baselines(workload, self._options, length)
        if self._rival is not None:
            with blame(self._rival.participant):
                bench.enter(self._rival.participant, workload, length, timed=True)
            baselines.append(self._rival.participant)
        verifier = TimedVerifier(
            candidate,
            baselines[0],
            prepared.pool,
            prepared.described,
            lambda inputs: self._ask_fresh_process(bench, workload, inputs),
        )
        with self._explaining(loading=False):
            measurement = measure(
                candidate,
                baselines,
                sets,
                length,
                self._options.sampling,
                verifier,
                verifier.check_hidden,
            )
        mine = measurement.samples[CANDIDATE]
        theirs = measurement.samples[baselines[0].name]
        cores = len(self._place.timed)
        check_processor_use(mine.windows, theirs.windows, cores)
        fastest = sorted(mine.seconds)[len(mine.seconds) // 2]
        speed = cores * store_bytes_per_second()
        check_physics(fastest, prepared.output_bytes, speed, measurement.doubt)
        return measurement

    def _batch_length(self, prepared: Prepared, workload: Workload, seconds: float) -> int:
        rival = 0.0 if self._rival is None else self._rival.seconds[workload.name]
        capacity = prepared.capacity
        return batch_length(prepared.seconds, seconds, capacity, rival_seconds=rival)
