"""The judge: evaluates candidates one after the other, and keeps the benches of recent tasks."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from kernel_smith.errors import InternalError, MissingPrerequisite
from kernel_smith.evaluation.backends import find_backend
from kernel_smith.evaluation.judge.inputs.admission import admit
from kernel_smith.evaluation.judge.inputs.footprint import foresee
from kernel_smith.evaluation.judge.pipeline import Progress, Session
from kernel_smith.evaluation.judge.platform import device_state
from kernel_smith.evaluation.judge.platform.bench import Bench
from kernel_smith.evaluation.judge.platform.device_bench import DeviceBench
from kernel_smith.evaluation.judge.platform.device_session import DeviceFull, DeviceSession
from kernel_smith.evaluation.judge.platform.host_session import HostSession
from kernel_smith.evaluation.judge.platform.spares import Spares
from kernel_smith.evaluation.judge.processes.child import Interrupted
from kernel_smith.evaluation.judge.processes.pool import CoreSet, ProcessPool
from kernel_smith.evaluation.judge.timing.rival import RivalFailed
from kernel_smith.records import Admission, Beside, Candidate, Evaluation, Options, Task

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
        self._benches: OrderedDict[_Key, Bench] = OrderedDict()
        self._spares: Spares | None = None

    def evaluate(
        self,
        task: Task,
        candidate: Candidate,
        options: Options,
        progress: Progress,
        beside: Candidate | None = None,
    ) -> Evaluation:
        """One candidate's evaluation. Raises only for bad tasks, machines, and defects of ours."""
        problems: list[str] = []
        doubts: list[str] = []
        waits = 0
        failed: Beside | None = None
        if self.holds_device and device_state.need_of_memory().is_felt():
            self._keep_only(task)
        while len(problems) < _ATTEMPTS:
            session = self._session(task, candidate, options, progress)
            rival = None
            if beside is not None and failed is None:
                rival = self._session(task, beside, options, progress)
            starved = ""
            try:
                evaluation = session.run(rival)
                if not session.in_doubt or len(doubts) == _SECOND_LOOKS:
                    notes = (*evaluation.notes, *doubts)
                    rivalry = failed or evaluation.beside
                    return evaluation.model_copy(update={"beside": rivalry, "notes": notes})
                doubts.append(f"measured again: {evaluation.reason}: {evaluation.message}")
                progress(doubts[-1])
            except RivalFailed as failure:
                assert rival is not None
                failed = rival.unqualified(failure.reason, failure.message)
            except DeviceFull as full:
                if full.by_candidate:
                    return session.give_up_for_memory(str(full))
                if full.verdict is not None and waits > 0:
                    return full.verdict
                starved = str(full)
            except Interrupted as interrupted:
                if _NO_MEMORY in str(interrupted):
                    starved = str(interrupted)
                else:
                    problems.append(str(interrupted))
                    progress(f"again, for no fault of the candidate's: {interrupted}")
            finally:
                session.close()
                if rival is not None:
                    rival.close()
            if starved:
                self._wait_for_memory(task, waits, starved, progress)
                waits += 1
        raise InternalError("a trusted process failed in every attempt: " + "; ".join(problems))

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

    def _memory_missing(self, task: Task, why: str) -> MissingPrerequisite:
        """Say what a task takes, as far as that is known, and what there is."""
        known = {w.name: foresee(task, w) for w in task.workloads}
        for bench in (b for key, b in self._benches.items() if key[1] == task.content_hash):
            known |= bench.footprints()
        sizes = [f"workload {name}: {size}" for name, size in known.items() if size is not None]
        free, total = (size / _GIB for size in device_state.memory())
        failure = why.partition(". GPU ")[0]  # PyTorch goes on with processes and advice
        return MissingPrerequisite(
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

    def _session(
        self, task: Task, candidate: Candidate, options: Options, progress: Progress
    ) -> Session:
        rest = (task, candidate, options, progress)
        on_device = find_backend(candidate.backend).gpu and device_state.is_usable()
        if not on_device or options.interpret:
            return HostSession(self.processes, self.place, self.bench, *rest)
        place = self.place.for_device()
        if self._spares is None:
            self._spares = Spares(self.processes, place)
        return DeviceSession(self._spares, self.processes, place, self._device_bench, *rest)

    def bench(self, task: Task, options: Options) -> Bench:
        """The task made ready; admitted on first use."""
        return self._ready(
            ("cpu", task.content_hash, options.seeds, options.admit),
            lambda: Bench(task, self.processes, self.place, options.seeds),
            options,
        )

    def _device_bench(self, task: Task, options: Options) -> Bench:
        place = self.place.for_device()
        return self._ready(
            ("cuda", task.content_hash, options.seeds, options.admit),
            lambda: DeviceBench(task, self.processes, place, options.seeds, device_state.quiet()),
            options,
        )

    def _ready(self, key: _Key, make: Callable[[], Bench], options: Options) -> Bench:
        for other, bench in self._benches.items():
            if other != key and other[0] == "cuda":
                bench.rest()
        if key in self._benches:
            self._benches.move_to_end(key)
            self._benches[key].wake()
            return self._benches[key]
        while len(self._benches) >= _BENCHES_KEPT or (self._benches and device_state.is_crowded()):
            self._benches.popitem(last=False)[1].close()
            device_state.give_memory_back()
        bench = make()
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
        return any(key[0] == "cuda" for key in self._benches)

    def close(self) -> None:
        if self._spares is not None:
            self._spares.close()
        for bench in self._benches.values():
            bench.close()
