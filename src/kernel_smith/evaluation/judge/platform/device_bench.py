"""A task made ready on a GPU: its sets and its baseline processes are there."""

from __future__ import annotations

from kernel_smith.evaluation.judge.compiling.source import Maker
from kernel_smith.evaluation.judge.compiling.triton import TritonCompiler
from kernel_smith.evaluation.judge.evidence.device import describe_device
from kernel_smith.evaluation.judge.evidence.work import Work, count_work
from kernel_smith.evaluation.judge.inputs.budget import Budget
from kernel_smith.evaluation.judge.inputs.reference import InputSet
from kernel_smith.evaluation.judge.platform import device_state
from kernel_smith.evaluation.judge.platform.bench import Bench
from kernel_smith.evaluation.judge.platform.device_participant import DeviceParticipant
from kernel_smith.evaluation.judge.platform.memory_claims import Claims
from kernel_smith.evaluation.judge.platform.participant import Batch, Participant
from kernel_smith.evaluation.judge.platform.quiet import Quiet
from kernel_smith.evaluation.judge.processes.child import Child
from kernel_smith.evaluation.judge.processes.pool import CoreSet, ProcessPool
from kernel_smith.evaluation.judge.timing.device_clock import (
    Contest,
    cost_of_asking,
    time_both_ways,
)
from kernel_smith.evaluation.judge.timing.standings import (
    EAGER,
    BaselineRatio,
    BaselineRatios,
    standing,
)
from kernel_smith.records import Baseline, Limits, Precision, Sampling, Task, Workload

_SHARE_OF_MEMORY = 0.95  # of the device: how much a reference takes is its task's matter


class DeviceBench(Bench):
    device = "cuda"

    def __init__(
        self, task: Task, processes: ProcessPool, place: CoreSet, seeds: int, quiet: Quiet
    ) -> None:
        self.arena_bytes = device_state.arena_bytes()
        super().__init__(task, processes, place, seeds)
        self.quiet = quiet
        self._triton_compiler = TritonCompiler(processes, place, Limits(), device_state.turns())
        self._work: dict[str, Work] = {}
        self._standings = BaselineRatios(task, describe_device())
        # Needed soon: its context comes to be while the sets are drawn.
        self._successor = self._launch_baseline(EAGER)

    @property
    def tf32(self) -> bool:
        """Whoever may use coarse arithmetic may use it in the library, too; else nobody may."""
        return self.task.precision is not Precision.STRICT

    def _pause(self) -> None:
        device_state.turns().pause()
        device_state.make_room()

    def budget(self) -> Budget:
        return device_state.budget()

    def _demand_memory(self, workload: Workload) -> None:
        """A device says so itself when it is full."""

    def claims(self) -> Claims:
        return device_state.claims()

    def work(self, workload: Workload) -> Work:
        """What a call must move and compute."""
        if workload.name not in self._work:
            inputs = self.prepare(workload).pool.author.draw()
            self._work[workload.name] = count_work(self.reference, workload, inputs)
        return self._work[workload.name]

    def eager(self) -> DeviceParticipant:
        """The process that every candidate is timed beside."""
        participant = self._baseline(EAGER)
        assert isinstance(participant, DeviceParticipant)
        return participant

    def compile(self, workload: Workload, name: Baseline) -> None:
        """Have a baseline ready to be timed, unless its standing is known."""
        if self._standings.get(workload, name) is None:
            participant = self._baseline(name)
            self.enter(participant, workload, 1, timed=True)
            participant.bind([self.prepare(workload).pool.author.draw()])
            participant.run()
            self.leave(participant, workload)

    def standing(self, workload: Workload, name: Baseline, sampling: Sampling) -> BaselineRatio:
        """How a baseline compares with eager: from the cache, or timed now."""
        known = self._standings.get(workload, name)
        if known is None:
            participant = self._baseline(name)
            assert isinstance(participant, DeviceParticipant)
            sets = self.prepare(workload).pool.timing_sets()
            contest = Contest(self, workload, participant, sets, Trusting())
            timed = time_both_ways(contest, sampling)
            known = standing(name, timed.measurement, timed.plain)
            self._standings.put(workload, name, known)
        return known

    def renew_reference(self) -> None:
        """Not needed: how fast a GPU is does not depend on the age of the process that asks."""

    def _round_trip(self, participant: Participant, any_set: InputSet) -> float:
        assert isinstance(participant, DeviceParticipant)
        return cost_of_asking(participant, self.quiet).usual

    def _seconds_per_call(self, participant: Participant, batch: Batch, round_trip: float) -> float:
        """On the device, without the time that launching takes, where that can be told."""
        assert isinstance(participant, DeviceParticipant)
        if participant.capture() is not None:
            return super()._seconds_per_call(participant, batch, round_trip)
        for _ in range(2):
            participant.replay()
        return max(participant.device_seconds(), 1e-7)

    def _load(self, participant: Participant, compiled: str | None) -> None:
        participant.load(
            self.task.source,
            "task.py",
            "Model",
            len(self.place.timed),
            compiled=compiled,
            tf32=self.tf32,
            confined=compiled is None,
            disarmed=False,
            memory_share=_SHARE_OF_MEMORY,
        )

    @property
    def _maker(self) -> Maker:
        return self._triton_compiler

    def _participant(self, name: str, child: Child, limits: Limits) -> Participant:
        return DeviceParticipant(name, child, limits)

    def close(self) -> None:
        super().close()
        self._triton_compiler.close()


class Trusting:
    """Nobody suspects a baseline of cheating."""

    def __call__(self, sets: list[InputSet], batch: Batch) -> None: ...

    def take_hidden_check(self, like: InputSet) -> InputSet | None:
        return None
