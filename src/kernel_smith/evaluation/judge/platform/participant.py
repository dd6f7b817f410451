"""A process that takes part in a measurement: the candidate, or a baseline.

Both are driven through exactly the same requests. The participant owns the arenas it shares with
its process; the judge writes inputs before a batch and reads outputs after it.
"""

from __future__ import annotations

import base64
import os
import pickle
import time
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, TypeVar

import torch

from kernel_smith.evaluation.judge.evidence.perf_events import Sampler, SamplerUnavailable
from kernel_smith.evaluation.judge.inputs.reference import InputSet, Reference, Result
from kernel_smith.evaluation.judge.platform.batch import Batch, Watcher, Windows, described
from kernel_smith.evaluation.judge.platform.buffers import HostBuffers, SharedBuffers
from kernel_smith.evaluation.judge.platform.call_memory import CallMemory
from kernel_smith.evaluation.judge.platform.examining import Examiner
from kernel_smith.evaluation.judge.platform.spot_check import SpotCheck
from kernel_smith.evaluation.judge.platform.used_memory import UsedMemory
from kernel_smith.evaluation.judge.processes.child import Child, ChildFailed
from kernel_smith.evaluation.judge.processes.promptness import prompt
from kernel_smith.evaluation.judge.processes.waiting import Neighbours
from kernel_smith.evaluation.sandbox.arena import Slot
from kernel_smith.records import Limits, Workload

CANDIDATE, RIVAL = "candidate", "beside"
"""Names of participants. Baselines have those of `Baseline`."""
SAMPLES_PER_TIMED_SECOND = 4000  # each one takes microseconds of whoever is sampled
_MOST_NAMES, _LONGEST_NAME = 8, 200  # of parameters
_MOMENT = 0.01  # seconds
_FIRST = ""  # the name of the program that a process was loaded with
MOST_KEPT = 4  # results of earlier batches, where there is memory for them


ParticipantT = TypeVar("ParticipantT", bound="Participant")


class Participant:
    keeps_ledger = True
    """Does its process note each call when it returns?"""

    def __init__(
        self, name: str, child: Child, limits: Limits, room: SharedBuffers | None = None
    ) -> None:
        self.name = name
        self.child = child
        self.limits = limits
        self.room: SharedBuffers = room or HostBuffers()
        self._workload: Workload | None = None
        self.program = _FIRST
        """Which of the programs in the process is called, where there are several."""
        self._construction: dict[str, Any] = {}  # what is asked of the process, for any program
        self._memory = CallMemory(self.room)
        self._bound: list[InputSet] = []
        self._calls = 0  # that are bound, also when their inputs were let go of
        self._of_unknown_speed = True
        self._examiner = Examiner(child, self.room)
        self._used = UsedMemory()
        self._thorough = False
        self._spot: SpotCheck | None = None
        self._shared: frozenset[int] = frozenset()
        self._last_cpu = 0.0
        self._idle_cpu = 0.0
        self._bind_cpu = 0.0
        self.redrawn = 0
        self.lacking: list[str] = []  # parameters of the reference, by name
        self.ended = False
        self.sampler: Sampler | None = None
        self.not_sampled: str | None = None
        self.calling_seconds = 0.0
        self._neighbours: Neighbours | None = None  # once it is observed

    def observe(self, cores: Collection[int]) -> None:
        """Attach a sampler that stays switched off until somebody wants to know.

        Before the first thread starts, or every thread would need one event per core. And to
        baselines as well, though nobody samples them: the system takes a few microseconds longer to
        switch to an observed process, which would be charged to the candidate alone.
        """
        self.child.ready()
        self._neighbours = Neighbours(self.child.pid, len(cores))
        try:
            self.sampler = Sampler(self.child.pid, cores, SAMPLES_PER_TIMED_SECOND)
        except SamplerUnavailable as error:
            self.not_sampled = str(error)

    @property
    def fetches(self) -> bool:
        return self.room.fetches

    def load(self, source: str, name: str, entry: str, threads: int, **manner: Any) -> None:
        """Have the program imported. `manner` says what the process is to do differently:
        `compiled` (torch.compile's mode), `interpreted`, `disarmed`, `tf32`, `confined`."""
        self.child.ask(
            "load",
            self.limits.load_seconds,
            program=_FIRST,
            source=source,
            name=name,
            entry=entry,
            threads=threads,
            **manner,
        )

    def add(self, program: str, source: str, name: str) -> None:
        """Have one more program imported beside the first."""
        seconds = self.limits.load_seconds
        self.child.ask("add", seconds, program=program, source=source, name=name)

    def enter(
        self,
        reference: Reference,
        workload: Workload,
        like: Sequence[InputSet],
        answer: Result,
        capacity: int,
        kept_results: int = MOST_KEPT,
        *,
        own: Sequence[bool] = (),
        may_overlap: frozenset[int] = frozenset(),
        in_place: bool = False,
    ) -> None:
        """Share memory for `capacity` calls and construct the module for this workload.

        `like` and `answer`: see `CallMemory`. Of earlier results some are kept in the process, to
        notice when their memory is used again. `own`: does each output have memory of its own,
        which the judge may overwrite? Empty while that is not known. `may_overlap`: outputs that
        share memory with others in the reference. `in_place`: leave results there.
        """
        self._workload = workload
        memory = self._memory
        sizes = memory.lay_out(
            reference, workload, like, answer, capacity, with_ledger=self.keeps_ledger
        )
        parameter_slots = list(memory.parameters.values())
        self._examiner = Examiner(
            self.child, self.room, memory.outputs, parameter_slots, own, may_overlap, self._used
        )
        self.room.make(self.child, *sizes, self.limits.load_seconds, in_place=in_place)
        memory.fill()
        arguments = pickle.dumps(reference.init_arguments(workload))
        self._construction = {
            "seed": reference.parameter_seed,
            "arguments": base64.b64encode(arguments).decode(),
            "parameters": {name: slot.to_json() for name, slot in memory.parameters.items()},
            "statistics": {name: slot.to_json() for name, slot in memory.statistics.items()},
            "unlike_new": reference.unsettled(workload),
            "kept": kept_results,
        }
        self.construct()

    def construct(self) -> None:
        """Build the module of the program for the workload that was entered."""
        constructed = self.child.ask(
            "construct",
            self.limits.load_seconds,
            key=self._key,
            program=self.program,
            **self._construction,
        )
        self.redrawn = _count(constructed.get("redrawn", 0))
        self.lacking = _names(constructed.get("lacking", []))
        self._last_cpu = self.child.cpu_seconds()

    @property
    def _key(self) -> str:
        """What the process knows a program's module for a workload by."""
        workload = "" if self._workload is None else self._workload.name
        return workload if self.program == _FIRST else f"{self.program}/{workload}"

    def bind(self, sets: Sequence[InputSet], check_signature: bool = False) -> None:
        """Let the process look up its arguments, and only then write the inputs in place."""
        assert self._workload is not None
        self._of_unknown_speed = check_signature
        calls = self._memory.choose_places(sets)
        before_cpu = self._note_idle()
        self.child.ask(
            "bind",
            self.limits.load_seconds,
            key=self._key,
            calls=calls,
            check=check_signature,
            ledger=self._memory.ledger_place(),
        )
        self._last_cpu = self.child.cpu_seconds()
        self._bind_cpu = self._last_cpu - before_cpu
        self.rewrite(sets)

    def rewrite(self, sets: Sequence[InputSet]) -> None:
        """Put inputs where the process has looked up its arguments, and poison outputs that it is
        to write by itself."""
        self._note_bound(sets)
        if not self.fetches:
            self._memory.poison_outputs(len(sets))
        for call, inputs in enumerate(sets):
            self._memory.write(call, inputs)
        self.room.settle()

    def _note_bound(self, sets: Sequence[InputSet]) -> None:
        self._bound, self._calls = list(sets), len(sets)

    def bound(self, call: int) -> InputSet:
        """The inputs of one of the calls that were bound."""
        return self._bound[call]

    def came_late(self, spot: SpotCheck) -> int | None:
        """Return a call of the last batch that was entered before its results were there."""
        return (
            spot.came_late(self, self._memory.strides, self._examiner.own) if self.fetches else None
        )

    @property
    def bound_calls(self) -> int:
        return self._calls

    @property
    def bound_sets(self) -> list[InputSet]:
        """The inputs of all bound calls, as they are now."""
        return list(self._bound)

    def exchange(self, call: int, inputs: InputSet) -> bool:
        """Put other inputs in place of a call's, if they lie in memory in the same way."""
        if not inputs.fits_in_place_of(self._bound[call]):
            return False
        self._bound[call] = inputs
        self._memory.write(call, inputs)
        return True

    def unbind(self) -> None:
        """Let go of the inputs of the last batch, before others are drawn."""
        self._bound = []

    def release(self) -> None:
        """Give the memory of a workload back, here and in the process; `enter` takes it again."""
        self.unbind()
        self._views_dropped()
        if self.room.is_made and self.child.alive():
            self.child.ask("release", self.limits.load_seconds)
        self.room.leave()

    def _views_dropped(self) -> None:
        """Forget what refers to shared memory."""
        self._memory.drop_views()

    def _note_idle(self) -> float:
        """Add up what the process used since the last answer: nothing, if it is honest."""
        now = self.child.cpu_seconds()
        if self._last_cpu:
            self._idle_cpu += now - self._last_cpu
        return now

    def restless_seconds(self) -> float:
        """Processor time since it answered last, a moment ago, while nobody asked for anything."""
        time.sleep(_MOMENT)
        return self.child.cpu_seconds() - self._last_cpu

    @property
    def capacity(self) -> int:
        return len(self._memory.outputs)

    def run_stopping(self, spot: SpotCheck, watch: Watcher | None = None) -> Batch:
        """Run the bound calls and look into them on the way: the wall time means nothing then."""
        self._spot = spot
        try:
            return self.run(watch=watch)
        finally:
            self._spot = None

    def run(
        self, calls: int | None = None, watch: Watcher | None = None, *, thorough: bool = False
    ) -> Batch:
        """Time one batch of calls from outside, fetch the outputs, and have them described.

        `thorough`: see of all outputs, and not of one call's alone, that they are no inputs."""
        count = self._calls if calls is None else calls
        self._thorough, self._shared = thorough, frozenset()
        run_wall, run_cpu = self._time(count, watch)
        asked = [] if self.fetches else self._memory.outputs[:count]
        slots = [[slot.to_json() for slot in row] for row in asked]
        gathered = self.child.ask(
            "collect", self.limits.load_seconds, slots=slots, own=self._examiner.own
        )
        collected_cpu = self.child.cpu_seconds()
        windows = Windows(
            run_wall=run_wall,
            run_cpu=run_cpu,
            service_cpu=collected_cpu - self._last_cpu + self._bind_cpu,
            idle_cpu=self._idle_cpu,
            fresh_bytes=self._examiner.fresh_bytes,
        )
        self._last_cpu, self._idle_cpu = collected_cpu, 0.0
        batch = replace(
            described(gathered, count, windows),
            shared=self._shared,
            overlapping=self._examiner.overlapping,
        )
        # Not before: of a result that is shorter than it should be, something else would be hit.
        self._examiner.may_overwrite |= self._has_expected_sizes(batch)
        return batch

    def _has_expected_sizes(self, batch: Batch) -> bool:
        """By the process's own words. If they are not true, it damages nobody but itself."""
        described = [batch.first, *batch.odd[1:]]
        slots = next(iter(self._memory.outputs), [])
        expected = [(list(slot.shape), slot.dtype) for slot in slots]
        try:
            found = [[(t["shape"], t["dtype"]) for t in one["tensors"]] for one in described]
        except (KeyError, TypeError):
            return False
        return all(row == expected for row in found)

    def _time(self, count: int, watch: Watcher | None) -> tuple[float, float]:
        """Wall and processor seconds of the calls; the results are fetched before it goes on."""
        nonce = os.urandom(8).hex()
        # Once its speed is known, batches are planned to be far shorter than one call may take.
        timeout = self.limits.call_seconds * (max(count, 1) if self._of_unknown_speed else 1)
        self._memory.clear_ledger()
        if watch is not None:
            watch.start()
        before_cpu, before_waited = self._note_idle(), self._waited()
        before = time.perf_counter()
        # Already when it begins: on a core that both share, it might have finished by then.
        with nullcontext() if self._spot is None else prompt():
            self.child.post("go", calls=count, nonce=nonce, places=self.fetches)
            if self._spot is not None:
                self._spot.follow(self)
        answer = self.child.answer("go", timeout)
        wall = time.perf_counter() - before
        with self.child.stopped():
            finished_cpu = self.child.cpu_seconds()
            waited = self._waited() - before_waited
            if watch is not None:
                watch.stop()
            if answer.get("done") != nonce:
                self.child.kill()
                message = "the answer to another request"
                raise ChildFailed("protocol", message, self.child.read_log())
            if self.fetches:
                self.room.understand(answer.get("at"), count, self._memory.strides)
                self._take_results(count)
        self._last_cpu = finished_cpu
        self.calling_seconds += wall
        cpu = finished_cpu - before_cpu
        if self._neighbours is not None:
            wall = self._neighbours.without(waited, wall, cpu)
        return wall, cpu

    def _waited(self) -> float:
        return 0.0 if self._neighbours is None else self._neighbours.seconds()

    def _take_results(self, count: int) -> None:
        """Fetch and examine the results of a process that is stopped."""
        self._shared = self._examiner.take(self._memory.inputs, count, thorough=self._thorough)

    def entered(self) -> list[list[int]]:
        """Where the process says that the results are of calls that have returned."""
        return self._memory.entered(self._calls)

    def written_since(self, call: int) -> bool:
        """Did somebody write to the results of a call after they were fetched?"""
        return self._examiner.written_since(call)

    def result_slots(self, call: int) -> list[Slot]:
        """How the results of a call lie when they were fetched."""
        return self._memory.outputs[call]

    def outputs(self, call: int) -> list[torch.Tensor]:
        """What the process left in the output arena for one call."""
        return self._memory.results(call)

    def output_rows(self, calls: int) -> list[torch.Tensor]:
        """The same for many calls at once: per output a matrix with one row per call."""
        return self._memory.result_rows(calls)

    def inputs_unchanged(self, call: int) -> bool:
        return self._memory.holds(call, self._bound[call])

    def parameters_unchanged(self) -> bool:
        return self._memory.parameters_unchanged()

    def close(self) -> None:
        """The process is no longer needed."""
        self.ended = True
        self.unbind()
        self._views_dropped()
        self.room.leave()
        if self.sampler is not None:
            self.sampler.close()
        if self._neighbours is not None:
            self._neighbours.close()


def _count(number: Any) -> int:
    """A number that the process sent."""
    if not isinstance(number, int):
        raise ChildFailed("protocol", f"expected a number, got {type(number).__name__}")
    return number


def _names(sent: Any) -> list[str]:
    """Names of parameters that the process sent."""
    if not isinstance(sent, list) or not all(isinstance(name, str) for name in sent):
        raise ChildFailed("protocol", "expected a list of names")
    return [name[:_LONGEST_NAME] for name in sent[:_MOST_NAMES]]
