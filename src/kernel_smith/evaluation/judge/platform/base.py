"""What a machine's CPU and its GPU do differently. All else in the judge is the same for both.

A platform is the memory that evaluations share, the processes that take part in them, and the
clock. `ParticipantT` is the kind of process: on a GPU it can be asked for more.
"""

from __future__ import annotations

import ast
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal

from kernel_smith.evaluation.backends import Backend
from kernel_smith.evaluation.judge.compiling.source import Maker
from kernel_smith.evaluation.judge.inputs.budget import Budget
from kernel_smith.evaluation.judge.inputs.footprint import Footprint
from kernel_smith.evaluation.judge.inputs.reference import InputSet
from kernel_smith.evaluation.judge.platform.batch import Batch
from kernel_smith.evaluation.judge.platform.memory_claims import Claims
from kernel_smith.evaluation.judge.platform.participant import ParticipantT
from kernel_smith.evaluation.judge.processes.child import Child
from kernel_smith.evaluation.judge.processes.pool import CoreSet, ProcessPool
from kernel_smith.evaluation.judge.timing.outcome import Outcome
from kernel_smith.records import Candidate, Evaluation, Limits, Options, Task, Workload

if TYPE_CHECKING:
    from kernel_smith.evaluation.judge.contestant import Contestant
    from kernel_smith.evaluation.judge.platform.bench import Bench
    from kernel_smith.evaluation.judge.timing.rival import Rival

Provide = Callable[[Any], dict[str, Any]]
"""Compiles what a process asks for."""


@dataclass(frozen=True)
class Timings:
    """What timing showed, by workload, and fields of the evaluation that explain it."""

    outcomes: Mapping[str, Outcome]
    evidence: Mapping[str, Any] = field(default_factory=dict)


class Platform(ABC, Generic[ParticipantT]):
    device: Literal["cpu", "cuda"]
    """Where tensors are, in the words of torch."""
    age_matters: bool
    """Does the speed of a process depend on what it did before?"""
    times_without_kernels: bool
    """Is a process whose kernels do nothing of use when a candidate is timed?"""
    short_batch: float
    """In seconds: beside shorter ones the luck of a process counts."""

    def __init__(self, processes: ProcessPool, place: CoreSet) -> None:
        self.processes = processes
        self.place = place

    @property
    def is_gpu(self) -> bool:
        return self.device == "cuda"

    # Memory

    @abstractmethod
    def budget(self) -> Budget:
        """The memory that the sets of one workload may take."""

    @abstractmethod
    def claims(self) -> Claims:
        """The memory that evaluations take, as lanes share it."""

    @abstractmethod
    def arena_bytes(self) -> int:
        """How much the inputs and results of one batch may take."""

    def demand_memory(self, task: Task, workload: Workload) -> None:
        """Raise `MissingPrerequisite` where preparing a task would fill the machine."""

    def expect(self, footprint: Footprint) -> None:
        """Adjust what is kept for the next use to calls of this size."""

    def pause(self) -> None:
        """Before each use of the device by the reference."""

    def guard(self, run: Callable[[], Evaluation], end_processes: Callable[[], None]) -> Evaluation:
        """Run an evaluation; find out who is to blame if memory runs out, and raise `DeviceFull`.
        `end_processes` ends those of the candidate."""
        return run()

    # Processes

    @abstractmethod
    def participant(self, name: str, child: Child, limits: Limits) -> ParticipantT: ...

    @abstractmethod
    def reference_compiler(self, task: Task) -> Maker:
        """Who compiles for a reference, which may call kernels itself: a verified one that is to
        be improved upon."""

    @abstractmethod
    def reference_manner(self, task: Task, compiled: str | None) -> dict[str, Any]:
        """How a baseline is to load the task. `compiled`: by torch.compile, in this mode."""

    @abstractmethod
    def check_options(self, backend: Backend, options: Options) -> None:
        """Raise a `UserError` where options do not fit."""

    @abstractmethod
    def compiler(
        self, candidate: Candidate, backend: Backend, tree: ast.Module, limits: Limits
    ) -> Maker:
        """Who compiles for a candidate."""

    @abstractmethod
    def launch(
        self, role: str, objects: Path, provide: Provide, limits: Limits, largest: Footprint
    ) -> ParticipantT:
        """Start a process for a candidate, which can read `objects`. Does not wait for it."""

    @abstractmethod
    def candidate_manner(self, task: Task, *, disarmed: bool, interpreted: bool) -> dict[str, Any]:
        """How a candidate's process is to load it."""

    def look_ahead(self, backend: Backend, limits: Limits) -> None:
        """Start what the next candidate will need, if its backend is the same."""

    def is_right_without_kernels(
        self, bench: Bench[ParticipantT], participant: ParticipantT, workload: Workload
    ) -> bool | None:
        """Leave the kernels of this process out of a call, and compare its result. None where that
        cannot be tried."""
        return None

    def end(self, participant: ParticipantT) -> None:
        participant.close()
        self.processes.end(participant.child)

    def retire(self, participants: Sequence[ParticipantT], compiler: Maker | None) -> None:
        """A candidate's processes, and what was compiled for them, are not needed any more."""
        for participant in participants:
            if not participant.ended:
                self.end(participant)
        if compiler is not None:
            compiler.close()

    def close(self) -> None:
        """End processes that nobody has asked for."""

    # The clock

    def step(self, name: str) -> AbstractContextManager[None]:
        """What surrounds a step of an evaluation."""
        return contextlib.nullcontext()

    @abstractmethod
    def alone(self) -> AbstractContextManager[None]:
        """Have to oneself, among all judges of this machine, what calls are timed on."""

    @abstractmethod
    def compiling(self) -> AbstractContextManager[CoreSet]:
        """Have cores for many compilers at once: the judge's of what this yields."""

    @abstractmethod
    def glance(
        self, participant: ParticipantT, sets: Sequence[InputSet], round_trip: float
    ) -> float:
        """Seconds per call of one batch with cold caches. A hint: part of it may be the process's
        own word."""

    @abstractmethod
    def round_trip(self, participant: ParticipantT, any_set: InputSet) -> float:
        """Seconds of a batch without calls."""

    def seconds_per_call(self, participant: ParticipantT, batch: Batch, round_trip: float) -> float:
        """Roughly, of the calls that were just run."""
        return max(batch.windows.run_wall - round_trip, 1e-7) / batch.calls

    @abstractmethod
    def time(
        self,
        bench: Bench[ParticipantT],
        contestant: Contestant[ParticipantT],
        rival: Rival[ParticipantT] | None,
        seconds: Mapping[str, float],
    ) -> Timings:
        """Time a candidate that passed all other gates. `seconds`: per call, by workload, as seen
        when it was checked."""
