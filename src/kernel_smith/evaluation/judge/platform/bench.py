"""A task made ready: its reference, its secret sets, and the baseline processes that answer them.

A bench outlives many candidates. Its baseline processes never see one: they are forked from the
zygote, get the task's own source, and are driven like candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic

from kernel_smith.errors import InternalError
from kernel_smith.evaluation.judge.evidence.work import Work, count_work
from kernel_smith.evaluation.judge.inputs.first_look import FirstLook, look_at
from kernel_smith.evaluation.judge.inputs.footprint import Footprint
from kernel_smith.evaluation.judge.inputs.pool import Pool, make_pool
from kernel_smith.evaluation.judge.inputs.reference import AUTHOR, Reference
from kernel_smith.evaluation.judge.platform.base import Platform
from kernel_smith.evaluation.judge.platform.participant import MOST_KEPT, ParticipantT
from kernel_smith.evaluation.judge.timing.host_clock import capacity_for
from kernel_smith.evaluation.judge.timing.twins import Twins
from kernel_smith.records import Baseline, Limits, Options, Task, Workload

_COMPILE_SECONDS = 600.0
_REFERENCE_BYTES = 64 << 30  # how much it takes is its task's matter
# max-autotune starts as many compilers as there are cores.
_COMPILING = Limits(
    load_seconds=_COMPILE_SECONDS,
    call_seconds=_COMPILE_SECONDS,
    memory_bytes=_REFERENCE_BYTES,
    processes=1024,
)
_CALLING = Limits(load_seconds=_COMPILE_SECONDS, call_seconds=60.0, memory_bytes=_REFERENCE_BYTES)
_FOR_SHORT_BATCHES = 2  # times the memory
# Baselines that torch.compile makes, and in which mode.
COMPILED = {"compile": "default", "max-autotune": "max-autotune-no-cudagraphs"}


@dataclass
class Prepared:
    """One workload of a bench."""

    pool: Pool
    seconds: float  # the reference's time per call, roughly
    round_trip: float  # of a batch without calls
    described: dict[str, Any]  # what the reference's results look like
    capacity: int  # the longest batch that shared memory is spent on

    @property
    def output_bytes(self) -> int:
        return self.pool.footprint.outputs


class Bench(Generic[ParticipantT]):
    def __init__(self, task: Task, platform: Platform[ParticipantT], seeds: int) -> None:
        self.task = task
        self.platform = platform
        self.reference = Reference(task, platform.device, platform.pause)
        self._compiler = platform.reference_compiler(task)
        self._arena_bytes = platform.arena_bytes()
        self._seeds = seeds
        self._looks: dict[str, FirstLook] = {}
        self._pools: dict[str, Pool] = {}
        self._prepared: dict[str, Prepared] = {}
        self._work: dict[str, Work] = {}
        self._baselines: dict[str, ParticipantT] = {}
        self._successor: ParticipantT | None = None
        self._has_timed = False
        self.twins = Twins()
        self.qualified: set[str] = set()
        """Candidates that passed all gates, for others to be timed beside."""
        self.wake()

    def pool(self, workload: Workload) -> Pool:
        if workload.name not in self._pools:
            self._pools[workload.name] = make_pool(
                self.reference, workload, self._seeds, self.platform.budget(), self.look(workload)
            )
            if self._pools[workload.name].is_large:
                self.reference.give_memory_back()
        return self._pools[workload.name]

    def look(self, workload: Workload) -> FirstLook:
        """What a first call showed."""
        if workload.name not in self._looks:
            self.platform.demand_memory(self.task, workload)
            look = look_at(self.reference, workload, self.platform.budget())
            self.platform.expect(look.footprint)
            self._looks[workload.name] = look
        return self._looks[workload.name]

    @property
    def is_large(self) -> bool:
        """Has it a workload of which no sets are kept?"""
        return any(pool.is_large for pool in self._pools.values())

    def footprints(self) -> dict[str, Footprint]:
        """The sizes of its workloads, as far as they are known."""
        return {name: pool.footprint for name, pool in self._pools.items()}

    def largest(self) -> Footprint:
        """The footprint of the workload that takes most."""
        pools = [self.pool(workload) for workload in self.task.workloads]
        return max((pool.footprint for pool in pools), key=lambda footprint: footprint.lane)

    def prepare(self, workload: Workload) -> Prepared:
        """Draw the sets and learn from the reference's process how it behaves."""
        if workload.name not in self._prepared:
            pool = self.pool(workload)
            participant = self.eager()
            self._prepared[workload.name] = self._learn(pool, participant, workload)
            if pool.is_large:
                participant.release()
        return self._prepared[workload.name]

    def _learn(self, pool: Pool, participant: ParticipantT, workload: Workload) -> Prepared:
        """Have the reference's process, which tells nobody, answer the author's sets."""
        checks = [c for c in pool.checks if c.label == AUTHOR][: pool.checks_at_once]
        inputs = [check.draw() for check in checks]
        self._enter(participant, workload, len(inputs), timed=True)
        for _ in range(2):
            participant.bind(inputs)
            batch = participant.run()
        if batch.first is None:
            raise InternalError("the reference's process returned no result")
        round_trip = self.platform.round_trip(participant, inputs[0])
        seconds = self.platform.seconds_per_call(participant, batch, round_trip)
        return Prepared(pool, seconds, round_trip, batch.first, self._capacity(pool, seconds))

    def _capacity(self, pool: Pool, seconds: float) -> int:
        """The longest batch. Where it is short all the same, calls are worth more memory."""
        size = pool.footprint.inputs + pool.footprint.outputs
        capacity = capacity_for(size, self._arena_bytes)
        if capacity * seconds >= self.platform.short_batch:
            return capacity
        return capacity_for(size, _FOR_SHORT_BATCHES * self._arena_bytes)

    def work(self, workload: Workload) -> Work:
        """What a call must move and compute."""
        if workload.name not in self._work:
            inputs = self.prepare(workload).pool.author.draw()
            self._work[workload.name] = count_work(self.reference, workload, inputs)
        return self._work[workload.name]

    def eager(self) -> ParticipantT:
        """The process that every candidate is timed beside."""
        return self.baseline("eager")

    def baselines(self, workload: Workload, options: Options, capacity: int) -> list[ParticipantT]:
        """The processes that play against a candidate on one workload, entered and warm."""
        prepared = self.prepare(workload)
        if prepared.pool.is_large:  # what has been freed lies in pieces that may serve for nothing
            self.reference.give_memory_back()
        self._has_timed = True
        participants = []
        for name in options.baselines:
            participant = self.baseline(name)
            self._enter(participant, workload, capacity, timed=True)
            if name in COMPILED:
                participant.bind([prepared.pool.author.draw()])
                participant.run()
                participant.unbind()
            participants.append(participant)
        return participants

    def renew_reference(self) -> None:
        """Have the next candidate timed against a process as young as its own.

        Where its memory lies, and so how fast it is, depends on all that a process did before: one
        that had timed other candidates was a percent faster than a newcomer with the same code.
        (The process of torch.compile stays, because what it compiled is worth more.)
        """
        if self.platform.age_matters and self._has_timed and "eager" in self._baselines:
            self.platform.end(self._baselines.pop("eager"))
            self._successor = self._launch_baseline("eager")
            self._has_timed = False

    def enter(
        self, participant: ParticipantT, workload: Workload, capacity: int, *, timed: bool = False
    ) -> Prepared:
        """Let a participant construct its module and share memory for `capacity` calls.

        While calls are checked, results are kept to notice memory that is used again.
        """
        prepared = self.prepare(workload)
        self._enter(participant, workload, capacity, timed=timed)
        return prepared

    def _enter(
        self, participant: ParticipantT, workload: Workload, capacity: int, *, timed: bool
    ) -> None:
        pool = self.pool(workload)
        kept = MOST_KEPT
        if pool.is_large:
            kept = 0 if timed else 1
        participant.enter(
            self.reference,
            workload,
            pool.layouts,
            pool.answer,
            capacity,
            kept,
            own=self._owned(workload),
            may_overlap=self.look(workload).overlapping,
            in_place=pool.is_large and participant.child.trusted,
        )

    def _owned(self, workload: Workload) -> list[bool]:
        """Which outputs lie in fresh memory? A reference may return an input, or a table that it
        keeps: nothing to be overwritten."""
        prepared = self._prepared.get(workload.name)
        described = [] if prepared is None else prepared.described["tensors"]
        return [not tensor["aliases"] and not tensor["reused"] for tensor in described]

    def dismiss(self, workload: Workload) -> None:
        """Take back what all baselines hold for a workload, if that is much."""
        for participant in self._baselines.values():
            self.leave(participant, workload)
        self.give_memory_back()

    def give_memory_back(self) -> None:
        """Return what was kept for the next use of large workloads."""
        self.reference.forget_draw()
        if self.is_large:
            self.reference.give_memory_back()

    def leave(self, participant: ParticipantT, workload: Workload) -> None:
        """Take back what a participant holds for a workload, if that is much."""
        if self.pool(workload).is_large and not participant.ended:
            participant.release()
            self.reference.make_room()

    def baseline(self, name: Baseline) -> ParticipantT:
        """A living process for this baseline; a dead one is replaced."""
        participant = self._baselines.get(name)
        if participant is not None and not participant.child.alive():
            self.platform.end(participant)
            participant = None
        if participant is None:
            participant = self._start_baseline(name)
            self._baselines[name] = participant
        return participant

    def _start_baseline(self, name: Baseline) -> ParticipantT:
        participant = self._successor if name == "eager" else None
        if participant is None:
            participant = self._launch_baseline(name)
        else:
            self._successor = None
        try:
            participant.observe(self.platform.place.timed)
            self._load(participant, COMPILED.get(name))
        except BaseException:
            self.platform.end(participant)
            raise
        return participant

    def _load(self, participant: ParticipantT, compiled: str | None) -> None:
        manner = self.platform.reference_manner(self.task, compiled)
        threads = len(self.platform.place.timed)
        participant.load(self.task.source, "task.py", "Model", threads, **manner)

    def _launch_baseline(self, name: Baseline) -> ParticipantT:
        """Returns at once; the process makes itself ready meanwhile."""
        compiled = name in COMPILED
        limits = _COMPILING if compiled else _CALLING
        # torch.compile runs a C++ compiler and keeps a cache, so its process is not confined.
        child = self.platform.processes.start(
            self.platform.place,
            limits,
            readable=(self._compiler.armed,),
            confined=not compiled,
            trusted=True,
            gpu=self.platform.is_gpu,
            shared_bytes=_REFERENCE_BYTES,
        )
        child.provide = self._compiler.provide
        return self.platform.participant(name, child, limits)

    def rest(self) -> None:
        """End the processes: another task is worked on, and each holds a part of the device."""
        for participant in self._baselines.values():
            self.platform.end(participant)
        self._baselines.clear()
        self.reference.forget_draw()

    def wake(self) -> None:
        """Start a process for the reference if there is none, before it is needed."""
        if "eager" not in self._baselines and self._successor is None:
            self._successor = self._launch_baseline("eager")

    def reveal(self) -> None:
        """Something has been told about sets that were handed out."""
        for pool in self._pools.values():
            pool.reveal()

    def redraw_one(self) -> bool:
        return any(pool.redraw_one() for pool in self._pools.values())

    def close(self) -> None:
        successors = [self._successor] if self._successor else []
        for participant in [*self._baselines.values(), *successors]:
            self.platform.end(participant)
        self._baselines.clear()
        self._compiler.close()
        self.reference.forget_draw()
        self.reference.give_memory_back()
