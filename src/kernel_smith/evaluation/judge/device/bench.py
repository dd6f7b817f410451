"""A task made ready on a GPU: its sets and its baseline processes are there."""

from __future__ import annotations

from kernel_smith.evaluation.judge.bench import Bench
from kernel_smith.evaluation.judge.child import Child
from kernel_smith.evaluation.judge.device import presence
from kernel_smith.evaluation.judge.device.clock import Contest, cost_of_asking, time_both_ways
from kernel_smith.evaluation.judge.device.describe import describe_device
from kernel_smith.evaluation.judge.device.foundry import Foundry
from kernel_smith.evaluation.judge.device.participant import DeviceParticipant
from kernel_smith.evaluation.judge.device.quiet import Quiet
from kernel_smith.evaluation.judge.device.standings import EAGER, Standing, Standings, standing
from kernel_smith.evaluation.judge.device.work import Work, count_work
from kernel_smith.evaluation.judge.nursery import Nursery, Place
from kernel_smith.evaluation.judge.participant import Batch, Participant
from kernel_smith.evaluation.judge.reference import InputSet
from kernel_smith.evaluation.judge.workshop import Maker
from kernel_smith.records import Baseline, Limits, Precision, Sampling, Task, Workload


class DeviceBench(Bench):
    device = "cuda"

    def __init__(
        self, task: Task, nursery: Nursery, place: Place, seeds: int, quiet: Quiet
    ) -> None:
        self.arena_bytes = presence.arena_bytes()
        super().__init__(task, nursery, place, seeds)
        self.quiet = quiet
        self._foundry = Foundry(nursery, place, Limits(), presence.turns())
        self._work: dict[str, Work] = {}
        self._standings = Standings(task, describe_device())
        # Needed soon: its context comes to be while the sets are drawn.
        self._successor = self._launch_baseline(EAGER)

    @property
    def tf32(self) -> bool:
        """Whoever may use coarse arithmetic may use it in the library, too; else nobody may."""
        return self.task.precision is not Precision.STRICT

    def _pause(self) -> None:
        presence.turns().pause()
        presence.make_room()

    def work(self, workload: Workload) -> Work:
        """What a call must move and compute."""
        if workload.name not in self._work:
            inputs = self.prepare(workload).stock.author.inputs
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
            self.enter(participant, workload, 1)
            participant.bind([self.prepare(workload).stock.author.inputs])
            participant.run()

    def standing(self, workload: Workload, name: Baseline, sampling: Sampling) -> Standing:
        """How a baseline compares with eager: from the cache, or timed now."""
        known = self._standings.get(workload, name)
        if known is None:
            participant = self._baseline(name)
            assert isinstance(participant, DeviceParticipant)
            sets = self.prepare(workload).stock.timing_sets()
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
        )

    @property
    def _maker(self) -> Maker:
        return self._foundry

    def _participant(self, name: str, child: Child, limits: Limits) -> Participant:
        return DeviceParticipant(name, child, limits)

    def close(self) -> None:
        super().close()
        self._foundry.close()


class Trusting:
    """Nobody suspects a baseline of cheating."""

    def __call__(self, sets: list[InputSet], batch: Batch) -> None: ...

    def take_surprise(self, like: InputSet) -> InputSet | None:
        return None
