"""Evaluations on the CPU. Kernels for a GPU are interpreted here, and never timed."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.backends import Backend, find_backend
from kernel_smith.evaluation.judge.compiling.source import Maker, SourceCompiler
from kernel_smith.evaluation.judge.inputs.budget import Budget
from kernel_smith.evaluation.judge.inputs.footprint import Footprint
from kernel_smith.evaluation.judge.inputs.reference import InputSet
from kernel_smith.evaluation.judge.platform import host_memory
from kernel_smith.evaluation.judge.platform.base import Platform, Provide, Timings
from kernel_smith.evaluation.judge.platform.memory_claims import Claims
from kernel_smith.evaluation.judge.platform.participant import Participant
from kernel_smith.evaluation.judge.processes.child import Child
from kernel_smith.evaluation.judge.processes.core_lock import exclusive
from kernel_smith.evaluation.judge.processes.pool import CoreSet
from kernel_smith.evaluation.judge.timing.host_clock import cost_of_asking
from kernel_smith.evaluation.judge.timing.on_host import HostTiming
from kernel_smith.records import Candidate, Limits, Options, Task, Workload

if TYPE_CHECKING:
    from kernel_smith.evaluation.judge.contestant import Contestant
    from kernel_smith.evaluation.judge.platform.bench import Bench
    from kernel_smith.evaluation.judge.timing.rival import Rival

_ARENA_BYTES = 48 << 20
_SHARED_BYTES = 256 << 20
_RESULTS = 3  # that are there at once: of this call, kept of an earlier one, and on the way


class HostPlatform(Platform[Participant]):
    device = "cpu"
    age_matters = True
    times_without_kernels = False
    short_batch = 0.0

    def budget(self) -> Budget:
        return host_memory.budget()

    def claims(self) -> Claims:
        return host_memory.claims()

    def arena_bytes(self) -> int:
        return _ARENA_BYTES

    def demand_memory(self, task: Task, workload: Workload) -> None:
        """Nobody else's evaluation may be to blame: the system ends processes then, and not always
        the right ones."""
        host_memory.demand(task, workload)

    def participant(self, name: str, child: Child, limits: Limits) -> Participant:
        return Participant(name, child, limits)

    def reference_compiler(self, task: Task) -> Maker:
        source = Candidate(source=task.source, name="task.py")
        return self.compiler(source, find_backend("cpp"), ast.parse(task.source), Limits())

    def reference_manner(self, task: Task, compiled: str | None) -> dict[str, Any]:
        return {"compiled": compiled}

    def check_options(self, backend: Backend, options: Options) -> None:
        if "graph" in options.baselines:
            raise BadInput(
                "baseline graph: CUDA graphs need a GPU", hint="choose eager or compile instead"
            )

    def compiler(
        self, candidate: Candidate, backend: Backend, tree: ast.Module, limits: Limits
    ) -> Maker:
        route = backend.route(on_device=False)
        return SourceCompiler(candidate, tree, backend, self.processes, self.place, limits, route)

    def launch(
        self, role: str, objects: Path, provide: Provide, limits: Limits, largest: Footprint
    ) -> Participant:
        # Large inputs and results are the task's doing, and not the candidate's.
        own = limits.memory_bytes + _RESULTS * largest.outputs
        child = self.processes.start(
            self.place,
            limits.model_copy(update={"memory_bytes": own}),
            readable=(objects,),
            shared_bytes=_SHARED_BYTES + largest.inputs + largest.parameters,
        )
        child.provide = provide
        return self.participant(role, child, limits)

    def candidate_manner(self, task: Task, *, disarmed: bool, interpreted: bool) -> dict[str, Any]:
        return {"disarmed": disarmed, "interpreted": interpreted}

    def alone(self) -> AbstractContextManager[None]:
        return exclusive(self.place.timed)

    @contextlib.contextmanager
    def compiling(self) -> Iterator[CoreSet]:
        """Those of timed work, too, while nobody times anything on them."""
        with self.alone():
            yield CoreSet(self.place.timed, self.place.timed | self.place.judge)

    def glance(
        self, participant: Participant, sets: Sequence[InputSet], round_trip: float
    ) -> float:
        """The judge has just written the inputs, on another core: they are in no cache of this."""
        participant.bind(sets)
        return self.seconds_per_call(participant, participant.run(), round_trip)

    def round_trip(self, participant: Participant, any_set: InputSet) -> float:
        return cost_of_asking(participant, any_set).usual

    def time(
        self,
        bench: Bench[Participant],
        contestant: Contestant[Participant],
        rival: Rival[Participant] | None,
        seconds: Mapping[str, float],
    ) -> Timings:
        return HostTiming(bench, contestant, rival, seconds).run()
