"""Evaluations on a GPU: the device's own memory, processes with a context on it, and its clock."""

from __future__ import annotations

import ast
import contextlib
import shutil
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from kernel_smith.errors import MissingPrerequisite
from kernel_smith.evaluation.backends import Backend
from kernel_smith.evaluation.judge.compiling.source import Folders, Maker, SourceCompiler
from kernel_smith.evaluation.judge.compiling.triton import TritonCompiler
from kernel_smith.evaluation.judge.inputs.budget import Budget
from kernel_smith.evaluation.judge.inputs.footprint import Footprint
from kernel_smith.evaluation.judge.inputs.reference import InputSet
from kernel_smith.evaluation.judge.platform import device_state
from kernel_smith.evaluation.judge.platform.base import Platform, Provide, Timings
from kernel_smith.evaluation.judge.platform.batch import Batch
from kernel_smith.evaluation.judge.platform.device_participant import DeviceParticipant
from kernel_smith.evaluation.judge.platform.memory_claims import Claims
from kernel_smith.evaluation.judge.platform.spares import Spare, Spares
from kernel_smith.evaluation.judge.processes.child import Child, Interrupted
from kernel_smith.evaluation.judge.processes.pool import CoreSet, ProcessPool
from kernel_smith.evaluation.judge.timing.device_clock import empty_batch
from kernel_smith.evaluation.judge.timing.on_device import DeviceTiming
from kernel_smith.evaluation.sandbox.device_memory import DeviceError
from kernel_smith.inline.gpu import vendor_of_torch
from kernel_smith.records import (
    Candidate,
    Evaluation,
    Limits,
    Options,
    Precision,
    Reason,
    Task,
    Workload,
)

if TYPE_CHECKING:
    from kernel_smith.evaluation.judge.contestant import Contestant
    from kernel_smith.evaluation.judge.platform.bench import Bench
    from kernel_smith.evaluation.judge.timing.rival import Rival

_SHARING = frozenset({"task", "load", "correctness", "kernels", "baselines", "profile"})
_LEAST_UNUSED, _SHARE_UNUSED = 512 << 20, 8
_EMPTY_BATCHES = 7
_MUCH_MEMORY = 0.25  # of the device
_SHARE_OF_REFERENCE = 0.95  # of the same: how much a reference takes is its task's matter
_SHARE_OF_CANDIDATE = 0.5  # others use it as well


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


class DevicePlatform(Platform[DeviceParticipant]):
    device = "cuda"
    age_matters = False
    times_without_kernels = True
    short_batch = 1e-3

    def __init__(self, processes: ProcessPool, place: CoreSet) -> None:
        super().__init__(processes, place)
        device_state.quiet()
        self._spares = Spares(processes, place)
        self._taken: dict[Path, Spare] = {}  # by the folder of its own
        self._launched: set[Path] = set()
        self._unused_bytes = _LEAST_UNUSED  # that the judge may keep for its next tensors

    def budget(self) -> Budget:
        return device_state.budget()

    def claims(self) -> Claims:
        return device_state.claims()

    def arena_bytes(self) -> int:
        return device_state.arena_bytes()

    def expect(self, footprint: Footprint) -> None:
        self._unused_bytes = max(_LEAST_UNUSED, footprint.lane // _SHARE_UNUSED)

    def pause(self) -> None:
        """Let others have their turn, and give freed memory back. Not while calls are timed: the
        driver clears what it gets back, with some of the device's bandwidth."""
        turns = device_state.turns()
        turns.pause()
        device_state.make_room(self._unused_bytes if turns.is_shared else None)

    def guard(self, run: Callable[[], Evaluation], end_processes: Callable[[], None]) -> Evaluation:
        """Memory that ran out may be the candidate's doing, or that of other judges."""
        try:
            evaluation = run()
        except (torch.OutOfMemoryError, DeviceError) as error:
            raise DeviceFull(str(error), by_candidate=_frees_much(end_processes)) from error
        if evaluation.reason is Reason.MEMORY_LIMIT and not _frees_much(end_processes):
            free, total = device_state.memory()
            scarce = free < _MUCH_MEMORY * total
            verdict = None if scarce else evaluation
            raise DeviceFull(evaluation.message, by_candidate=False, verdict=verdict)
        return evaluation

    def participant(self, name: str, child: Child, limits: Limits) -> DeviceParticipant:
        return DeviceParticipant(name, child, limits)

    def reference_compiler(self, task: Task) -> Maker:
        return TritonCompiler(self.processes, self.place, Limits(), device_state.turns())

    def reference_manner(self, task: Task, compiled: str | None) -> dict[str, Any]:
        return {
            "compiled": compiled,
            "tf32": _may_use_tf32(task),
            "confined": compiled is None,
            "disarmed": False,
            "switched": False,
            "memory_share": _SHARE_OF_REFERENCE,
        }

    def check_options(self, backend: Backend, options: Options) -> None:
        """Every baseline is there, but not every Triton."""
        vendor = vendor_of_torch()
        if backend.in_process and vendor != "cuda":
            raise MissingPrerequisite(
                f"Triton kernels are judged on NVIDIA GPUs, and this torch is for {vendor}",
                hint=f"write them for --backend {vendor}, or add --interpret to check them",
            )

    def compiler(
        self, candidate: Candidate, backend: Backend, tree: ast.Module, limits: Limits
    ) -> Maker:
        turns = device_state.turns()
        spares = [self._spares.take(limits) for _ in range(_processes_for(backend))]
        places = [spare.objects for spare in spares]
        if len(places) == 1:
            places.append(self.processes.new_folder("objects"))
        folders = Folders(*places)
        compiler: Maker
        if backend.in_process:
            compiler = TritonCompiler(self.processes, self.place, limits, turns, folders)
        else:
            compiler = SourceCompiler(
                candidate,
                tree,
                backend,
                self.processes,
                self.place,
                limits,
                backend.route(on_device=True),
                folders,
                meanwhile=turns.stepping_out,
            )
        self._taken |= {spare.objects: spare for spare in spares}
        return compiler

    def launch(
        self, role: str, objects: Path, provide: Provide, limits: Limits, largest: Footprint
    ) -> DeviceParticipant:
        if objects in self._taken and objects not in self._launched:
            self._launched.add(objects)
            child = self._taken[objects].child
        else:
            child = self._spares.start_beside(objects, limits)
        child.provide, child.compile_seconds = provide, limits.compile_seconds
        return self.participant(role, child, limits)

    def candidate_manner(self, task: Task, *, disarmed: bool, interpreted: bool) -> dict[str, Any]:
        return {
            "tf32": _may_use_tf32(task),
            "confined": True,
            "disarmed": disarmed,
            "switched": True,
            "memory_share": _SHARE_OF_CANDIDATE,
        }

    def look_ahead(self, backend: Backend, limits: Limits) -> None:
        self._spares.prepare(limits, _processes_for(backend))

    def is_right_without_kernels(
        self, bench: Bench[DeviceParticipant], participant: DeviceParticipant, workload: Workload
    ) -> bool | None:
        """Replay a graph that was captured without them. While it is captured nothing runs, so a
        program cannot find out by trying that its kernels do nothing, and behave for once."""
        prepared = bench.enter(participant, workload, 1)
        author = prepared.pool.author
        inputs = author.draw()
        foreseen = author.foresee(inputs)  # first, or both computations would hold memory at once
        if prepared.pool.is_large:
            bench.reference.make_room()
        participant.bind([inputs])
        participant.run()
        if participant.capture(disarmed=True) is not None:
            return None
        participant.rewrite([inputs])
        participant.replay()
        right = author.agrees(participant.outputs(0), inputs, foreseen)
        participant.unbind()
        bench.leave(participant, workload)
        return right

    def retire(self, participants: Sequence[DeviceParticipant], compiler: Maker | None) -> None:
        """Most candidates that fail do so before the process without kernels is needed: it serves
        the next one."""
        idle = [p.child for p in participants if p.is_unused]
        for participant in participants:
            if participant.is_unused:
                participant.close()
        super().retire(participants, compiler)
        if compiler is not None:
            for objects in (compiler.armed, compiler.disarmed):
                self._give_back(objects, idle)
        device_state.give_memory_back()

    def _give_back(self, objects: Path, idle: list[Child]) -> None:
        spare = self._taken.pop(objects, None)
        if spare is None:
            shutil.rmtree(objects, ignore_errors=True)
        elif spare.child in idle or objects not in self._launched:
            self._spares.take_back(spare)
        else:
            self._spares.forget(spare)
        self._launched.discard(objects)

    def close(self) -> None:
        self._spares.close()

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Whatever touches the device takes turns with other judges."""
        with contextlib.ExitStack() as stack:
            if name in _SHARING:
                stack.enter_context(device_state.turns().sharing())
                stack.callback(device_state.make_room)
            yield

    def alone(self) -> AbstractContextManager[None]:
        return device_state.turns().alone()

    @contextlib.contextmanager
    def compiling(self) -> Iterator[CoreSet]:
        """Without the device, which others may use meanwhile."""
        yield self.place

    def glance(
        self, participant: DeviceParticipant, sets: Sequence[InputSet], round_trip: float
    ) -> float:
        """A replay by the process's own events, or, where calls cannot be captured, plain calls."""
        participant.bind(sets)
        if participant.capture() is not None:
            device_state.quiet().make_cold()
            batch = participant.run()
            return super().seconds_per_call(participant, batch, round_trip)
        device_state.quiet().make_cold()
        participant.replay(timed=False)
        return max(participant.device_seconds(), 1e-7)

    def round_trip(self, participant: DeviceParticipant, any_set: InputSet) -> float:
        return statistics.median(empty_batch(participant, ()) for _ in range(_EMPTY_BATCHES))

    def seconds_per_call(
        self, participant: DeviceParticipant, batch: Batch, round_trip: float
    ) -> float:
        """On the device, without the time that launching takes, where that can be told."""
        if participant.capture() is not None:
            return super().seconds_per_call(participant, batch, round_trip)
        for _ in range(2):
            participant.replay(timed=False)
        return max(participant.device_seconds(), 1e-7)

    def time(
        self,
        bench: Bench[DeviceParticipant],
        contestant: Contestant[DeviceParticipant],
        rival: Rival[DeviceParticipant] | None,
        seconds: Mapping[str, float],
    ) -> Timings:
        return DeviceTiming(bench, contestant, rival).run()


def _processes_for(backend: Backend) -> int:
    """Count those that a candidate needs for sure: Triton's kernels can be left out in the process
    that has them, and others take one that was loaded without."""
    return 1 if backend.in_process else 2


def _may_use_tf32(task: Task) -> bool:
    """Whoever may use coarse arithmetic may use it in the library, too; else nobody may."""
    return task.precision is not Precision.STRICT


def _frees_much(end_processes: Callable[[], None]) -> bool:
    """End the candidate's processes: is a good part of the device's memory free then?"""
    before, total = device_state.memory()
    end_processes()
    return device_state.memory()[0] - before > _MUCH_MEMORY * total
