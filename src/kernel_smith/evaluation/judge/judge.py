"""The judge: evaluates candidates one after the other, and keeps the benches of recent tasks."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from typing import Any

from kernel_smith.errors import BadInput, InternalError, NotEnoughMemory
from kernel_smith.evaluation.backends import find_backend
from kernel_smith.evaluation.judge.inputs.admission import admit
from kernel_smith.evaluation.judge.inputs.footprint import foresee
from kernel_smith.evaluation.judge.inputs.task_code import where
from kernel_smith.evaluation.judge.journal import Progress
from kernel_smith.evaluation.judge.pipeline import Pipeline
from kernel_smith.evaluation.judge.platform import device_state
from kernel_smith.evaluation.judge.platform.base import Platform
from kernel_smith.evaluation.judge.platform.bench import Bench
from kernel_smith.evaluation.judge.platform.device import DeviceFull, DevicePlatform
from kernel_smith.evaluation.judge.platform.host import HostPlatform
from kernel_smith.evaluation.judge.processes.child import Interrupted
from kernel_smith.evaluation.judge.processes.pool import CoreSet, ProcessPool
from kernel_smith.evaluation.judge.sweeping.sweep import Sweeping
from kernel_smith.evaluation.judge.timing.rival import RivalFailed
from kernel_smith.records import Admission, Beside, Candidate, Evaluation, Options, Sweep, Task

_BENCHES_KEPT = 3
_ATTEMPTS = 5
_SECOND_LOOKS = 2  # before somebody is accused of what a busy machine may have done
_NO_MEMORY = "out of memory"  # CUDA's words, in the last ones of a trusted process
_WAITS_FOR_MEMORY = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0)  # seconds, for others
_GIB = 1 << 30

_Key = tuple[str, str, int, tuple[Admission, ...]]


class Judge:
    """Evaluates candidates one after the other. Owns the benches."""

    def __init__(self, processes: ProcessPool, cores: tuple[int, ...] | None = None) -> None:
        self.place = CoreSet.choose(cores)
        self.processes = processes
        self._host = HostPlatform(processes, self.place)
        self._device: DevicePlatform | None = None
        self._benches: OrderedDict[_Key, Bench[Any]] = OrderedDict()

    def evaluate(
        self,
        task: Task,
        candidate: Candidate,
        options: Options,
        progress: Progress,
        beside: Candidate | None = None,
    ) -> Evaluation:
        """One candidate's evaluation. Raises only for bad tasks, machines, and defects of ours."""
        problems: list[Interrupted] = []
        doubts: list[str] = []
        waits = 0
        failed: Beside | None = None
        if self.holds_device and device_state.need_of_memory().is_felt():
            self._keep_only(task)
        while len(problems) < _ATTEMPTS:
            rival = beside if failed is None else None
            pipeline = self._pipeline(task, candidate, options, progress, rival)
            starved = ""
            try:
                evaluation = pipeline.run()
                if not pipeline.in_doubt or len(doubts) == _SECOND_LOOKS:
                    notes = (*evaluation.notes, *doubts)
                    rivalry = failed or evaluation.beside
                    return evaluation.model_copy(update={"beside": rivalry, "notes": notes})
                doubts.append(f"measured again: {evaluation.reason}: {evaluation.message}")
                progress(doubts[-1])
            except RivalFailed as failure:
                failed = pipeline.without_rival(failure)
            except DeviceFull as full:
                if full.by_candidate:
                    return pipeline.give_up_for_memory(str(full))
                if full.verdict is not None and waits > 0:
                    return full.verdict
                starved = str(full)
            except Interrupted as interrupted:
                if _NO_MEMORY in str(interrupted):
                    starved = str(interrupted)
                else:
                    problems.append(interrupted)
                    progress(f"again, for no fault of the candidate's: {interrupted}")
            finally:
                pipeline.close()
            if starved:
                self._wait_for_memory(task, waits, starved, progress)
                waits += 1
        raise _in_every_attempt(task, problems)

    def sweep(
        self,
        task: Task,
        parent: Candidate,
        variants: Sequence[str],
        options: Options,
        seconds: float,
        progress: Progress,
        *,
        everybody: bool = False,
    ) -> Sweep:
        """Try variants of an accepted program out, within about so many seconds."""
        platform = self._platform(parent, options)
        if find_backend(parent.backend).route(on_device=platform.is_gpu) != "native":
            return Sweep(problem=f"kernels for {parent.backend} cannot be timed on this machine")
        try:
            bench = self._ready(platform, task, options)
            for workload in task.workloads:
                bench.prepare(workload)
            sweeping = Sweeping(
                platform,
                bench,
                parent,
                variants,
                options,
                seconds,
                progress,
                everybody=everybody,
            )
            try:
                return sweeping.run()
            finally:
                bench.give_memory_back()
        except Interrupted as interrupted:  # which an evaluation would repeat
            return Sweep(problem=str(interrupted))

    def _wait_for_memory(self, task: Task, waits: int, why: str, progress: Progress) -> None:
        """Until other judges need less, or have heard that this one has too little.

        One that is idle hears it within a second. If nobody else evaluates anything after that,
        there is nobody to wait for.
        """
        held = device_state.claims().of_others()
        if waits == len(_WAITS_FOR_MEMORY) or (waits > 0 and not held):
            raise self._memory_missing(task, why)
        progress(f"waiting for memory on the GPU: other evaluations hold {held / _GIB:.1f} GiB")
        self._keep_only(task)
        with device_state.need_of_memory().felt():
            time.sleep(_WAITS_FOR_MEMORY[waits])

    def _memory_missing(self, task: Task, why: str) -> NotEnoughMemory:
        """Say what a task takes, as far as that is known, and what there is."""
        known = {w.name: foresee(task, w) for w in task.workloads}
        for bench in (b for key, b in self._benches.items() if key[1] == task.content_hash):
            known |= bench.footprints()
        sizes = [f"workload {name}: {size}" for name, size in known.items() if size is not None]
        free, total = (size / _GIB for size in device_state.memory())
        failure = why.partition(". GPU ")[0]  # PyTorch goes on with processes and advice
        return NotEnoughMemory(
            f"the GPU's memory does not suffice for task {task.name}: {free:.1f} of {total:.1f} "
            f"GiB are free; {'; '.join([*sizes, failure])}",
            hint="end other programs that use the GPU, or give the task smaller workloads",
        )

    def _keep_only(self, task: Task | None) -> None:
        """Let go of the benches of other tasks, as other judges will of theirs."""
        kept = None if task is None else task.content_hash
        for key in [key for key in self._benches if key[1] != kept]:
            self._benches.pop(key).close()
        device_state.give_memory_back()

    def _pipeline(
        self,
        task: Task,
        candidate: Candidate,
        options: Options,
        progress: Progress,
        beside: Candidate | None,
    ) -> Pipeline[Any]:
        platform = self._platform(candidate, options)
        ready = partial(self._ready, platform)
        return Pipeline(platform, ready, task, candidate, options, progress, beside)

    def _platform(self, candidate: Candidate, options: Options) -> Platform[Any]:
        on_device = find_backend(candidate.backend).gpu and device_state.is_usable()
        return self._on_device() if on_device and not options.interpret else self._host

    def _on_device(self) -> DevicePlatform:
        if self._device is None:
            self._device = DevicePlatform(self.processes, self.place.for_device())
        return self._device

    def _ready(self, platform: Platform[Any], task: Task, options: Options) -> Bench[Any]:
        """The task made ready; admitted on first use."""
        key = (platform.device, task.content_hash, options.seeds, options.admit)
        for other, bench in self._benches.items():
            if other != key and bench.platform.is_gpu:
                bench.rest()
        if key in self._benches:
            self._benches.move_to_end(key)
            self._benches[key].wake()
            return self._benches[key]
        while len(self._benches) >= _BENCHES_KEPT or (self._benches and device_state.is_crowded()):
            self._benches.popitem(last=False)[1].close()
            device_state.give_memory_back()
        bench = Bench(task, platform, options.seeds)
        try:
            admit(bench, options.admit)
        except BaseException:
            bench.close()
            raise
        self._benches[key] = bench
        return bench

    def use_idle_time(self) -> bool:
        """Bury one dead child, or replace one used secret set; False when all is done."""
        if self.processes.bury_one():
            return True
        if self.holds_device and device_state.need_of_memory().is_felt():
            self._keep_only(None)
        return any(bench.redraw_one() for bench in self._benches.values())

    @property
    def holds_device(self) -> bool:
        """Has it memory on a GPU that another judge may need?"""
        return any(bench.platform.is_gpu for bench in self._benches.values())

    def close(self) -> None:
        if self._device is not None:
            self._device.close()
        for bench in self._benches.values():
            bench.close()


def _in_every_attempt(task: Task, problems: Sequence[Interrupted]) -> Exception:
    """Return whose trouble it is that trusted processes failed again and again.

    The task's own code ran in the judge. Where it raises an exception of its own in the process
    that is timed, each time, it wants something that only the judge has.
    """
    raised = [problem.raised for problem in problems]
    if all(each is not None and "CUDA" not in each for each in raised):
        return BadInput(
            f"{where(task)}: the reference fails in the process that it is timed in: "
            f"{str(raised[-1]).splitlines()[0]}",
            hint="that process has no network and none of your files and environment variables: "
            "write what the reference reads into the task file",
        )
    told = "; ".join(map(str, problems))
    return InternalError(f"a trusted process failed in every attempt: {told}")
