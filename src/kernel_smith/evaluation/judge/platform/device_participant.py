"""A participant whose calls run on a GPU: plainly, or as the replay of a captured graph."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from kernel_smith.evaluation.judge.inputs.reference import InputSet
from kernel_smith.evaluation.judge.platform import device_state
from kernel_smith.evaluation.judge.platform.batch import Batch, Watcher, Windows, described
from kernel_smith.evaluation.judge.platform.buffers import POISON
from kernel_smith.evaluation.judge.platform.device_buffers import DeviceBuffers
from kernel_smith.evaluation.judge.platform.participant import Participant
from kernel_smith.evaluation.judge.platform.result_watch import Looks, ResultWatch
from kernel_smith.evaluation.judge.processes.child import Child, ChildFailed, Interrupted
from kernel_smith.evaluation.judge.processes.waiting import Neighbours
from kernel_smith.evaluation.sandbox.device_runner import ONE_MORE
from kernel_smith.evaluation.sandbox.doorbell import Doorbell
from kernel_smith.records import Limits

_NO_WINDOWS = Windows(0.0, 0.0, 0.0, 0.0)
_CONTEXT_SECONDS = 60.0
_PROFILER_SECONDS = 60.0
_LONGEST_AWAKE = 0.02
_PATIENCE_PER_CALL = 0.05  # the first one compiles; those that follow are short


class DeviceParticipant(Participant):
    keeps_ledger = False

    def __init__(self, name: str, child: Child, limits: Limits) -> None:
        self._device_room = DeviceBuffers()
        super().__init__(name, child, limits, self._device_room)
        self._captured: Batch | None = None
        self._bell = Doorbell.create()
        self._probe = torch.zeros(1, device="cuda")
        self._switching_seconds = 0.0
        self._neighbours: Neighbours | None = None  # once it is observed
        self._waited_seconds = 0.0  # in the last batch
        self._looks: Looks | None = None  # at the results of the last batch
        self._asked = False
        self._called: set[str] = set()  # programs' modules, by their keys
        self._views: list[torch.Tensor] = []  # of the inputs of the bound calls

    def observe(self, cores: Collection[int]) -> None:
        """Samples of the processor would say nothing about kernels on a GPU."""
        with device_state.turns().stepping_out():
            self.child.ready()
        self._neighbours = Neighbours(self.child.pid, cores=1)  # one thread of it launches

    @property
    def is_unused(self) -> bool:
        """Is there a process that nothing has been asked of yet?"""
        return not self._asked and not self.ended

    def load(self, source: str, name: str, entry: str, threads: int, **manner: Any) -> None:
        self._asked = True
        with device_state.turns().stepping_out():
            answer = self.child.ask("device", _CONTEXT_SECONDS, fds=(self._bell.fd,))
        missing = answer.get("missing")
        if missing:
            raise Interrupted(f"a child process got no device: {missing}")
        with device_state.turns().lingering():
            super().load(source, name, entry, threads, **manner)

    def add(self, program: str, source: str, name: str) -> None:
        with device_state.turns().lingering():
            super().add(program, source, name)

    def bind(self, sets: Sequence[InputSet], check_signature: bool = False) -> None:
        device_state.turns().pause()
        self._captured = None
        super().bind(sets, check_signature)

    def rewrite(self, sets: Sequence[InputSet]) -> None:
        self._note_bound(sets)
        room = self._device_room
        if self._captured is not None:
            room.poison_results()
        else:
            self._views = [
                room.inputs.view(slot) for slots in self._memory.inputs for slot in slots
            ]
        room.outputs.raw(0, room.outputs.size).fill_(POISON)
        if self._views:
            torch._foreach_copy_(self._views, [t for inputs in sets for t in inputs.tensors])
        room.settle()

    def _views_dropped(self) -> None:
        super()._views_dropped()
        self._views, self._captured = [], None

    def capture(self, *, first: int | None = None, disarmed: bool = False) -> str | None:
        """Have the bound calls captured as one graph; if the process refuses, its reason.

        `first`: only so many of them, of which the process learns when it is over. `disarmed`:
        without the kernels that it launches from Triton.
        """
        if self._key not in self._called:
            self.run()  # a library makes itself ready in a first call, which no capture allows
        count = self._calls if first is None else first
        seconds = self.limits.call_seconds * count
        with self._stopping_after(count):
            answer = self.child.ask(
                "capture", seconds, disarmed=disarmed, one_by_one=first is not None
            )
        if "refused" in answer:
            return str(answer["refused"])
        self._calls = count
        self._learn_places(answer.get("at"), count)
        gathered = self.child.ask("collect", self.limits.load_seconds, slots=[])
        self._captured = described(gathered, count, _NO_WINDOWS)
        return None

    @contextlib.contextmanager
    def _stopping_after(self, calls: int) -> Iterator[None]:
        """While the process is told after each call whether there is another one."""
        provide, asked = self.child.provide, itertools.count(1)

        def serve(need: Any) -> dict[str, Any]:
            if need == ONE_MORE:
                return {"more": next(asked) < calls}
            return {} if provide is None else provide(need)

        self.child.provide = serve
        try:
            yield
        finally:
            self.child.provide = provide

    def device_seconds(self) -> float:
        """Seconds per call of the last batch that was not timed, by the process's own events."""
        gathered = self.child.ask("collect", self.limits.load_seconds, slots=[])
        return described(gathered, self._calls, _NO_WINDOWS).inner_seconds

    def replay(self, *, watched: bool = False, timed: bool = True) -> Batch:
        """Time one replay of the captured calls, and fetch the outputs.

        To look on, which the process is not told, takes time as well. So does having the process
        note times of its own, which it is told: that is for replays that are not timed."""
        assert self._captured is not None
        watch = self._device_room.watch() if watched else None
        wall, cpu, _ = self._go("replay", self._calls, watch, events=not timed)
        idle, self._idle_cpu = self._idle_cpu, 0.0
        seen = self._captured
        windows = Windows(wall, cpu, 0.0, idle, self._switching_seconds, self._waited_seconds)
        return Batch(seen.calls, windows, seen.first, seen.odd, 0.0, looks=self._looks)

    def run(
        self, calls: int | None = None, watch: Watcher | None = None, *, thorough: bool = False
    ) -> Batch:
        batch = super().run(calls, watch, thorough=thorough)
        self._called.add(self._key)
        around = {"switching_wall": self._switching_seconds, "waited": self._waited_seconds}
        return replace(batch, windows=replace(batch.windows, **around))

    def run_nothing(self) -> Windows:
        """Ask for a graph with next to nothing in it."""
        wall, cpu, _ = self._go("nothing", 0)
        return Windows(wall, cpu, 0.0, 0.0, self._switching_seconds, self._waited_seconds)

    def profile(self) -> list[dict[str, Any]]:
        """The kernels that the bound calls launch, in the process's own words."""
        with device_state.turns().stepping_out():
            self.child.ask("profiler", _PROFILER_SECONDS)
        answer = self.child.ask("profile", self.limits.load_seconds + self.limits.call_seconds)
        found = answer.get("kernels")
        if not isinstance(found, list):
            raise ChildFailed("protocol", "malformed list of kernels")
        return found

    def close(self) -> None:
        super().close()
        self._bell.close()
        if self._neighbours is not None:
            self._neighbours.close()

    def copied_outputs(self) -> list[torch.Tensor]:
        """One call's results as a kernel finds them that follows on the current stream."""
        self._read_results(self._go("copied", 1)[2], 1)
        return self.outputs(0)

    def _time(self, count: int, watch: Watcher | None) -> tuple[float, float]:
        wall, cpu, answer = self._go("plain", count)
        if count:
            self._read_results(answer, count)
        return wall, cpu

    def _read_results(self, answer: dict[str, Any], count: int) -> None:
        self._learn_places(answer.get("at"), count)
        with self.child.stopped():
            self._take_results(count)

    def _go(
        self, how: str, count: int, watch: ResultWatch | None = None, *, events: bool = False
    ) -> tuple[float, float, dict[str, Any]]:
        """Time a batch. `events`: the process is to time it as well, which takes time."""
        nonce, mark = os.urandom(8).hex(), int.from_bytes(os.urandom(8), "little")
        timeout = self.limits.call_seconds * (1 + _PATIENCE_PER_CALL * count)
        before_cpu, before_waited = self._note_idle(), self._kept_waiting()
        self._hand_device_over(mark, calls=count, nonce=nonce, how=how, events=events)
        looks = self._looks = None if watch is None else watch.begin()
        before = time.perf_counter()
        self._bell.ring(mark)
        if looks is not None:
            looks.follow(partial(self._is_over, mark, before + _LONGEST_AWAKE))
        finished = self._bell.await_finish(mark, _LONGEST_AWAKE)
        wall = time.perf_counter() - before
        if not finished:  # a long batch, or an exception
            with device_state.turns().lingering():
                answer = self.child.answer("go", timeout)
                wall = time.perf_counter() - before
        with self.child.stopped():
            self._last_cpu = self.child.cpu_seconds()
            self._take_device_back()
            self._waited_seconds = self._kept_waiting() - before_waited
            if looks is not None:
                looks.end()
            if how == "replay":
                self.room.fetch(self.child, self._memory.outputs)
        if finished:
            answer = self.child.answer("go", timeout)
        if answer.get("done") != nonce:
            self.child.kill()
            raise ChildFailed("protocol", "the answer to another request", self.child.read_log())
        self.calling_seconds += wall
        return wall, self._last_cpu - before_cpu, answer

    def _kept_waiting(self) -> float:
        """Seconds for which judge and process have been kept waiting for a core so far."""
        return 0.0 if self._neighbours is None else self._neighbours.seconds()

    def _is_over(self, mark: int, deadline: float) -> bool:
        return self._bell.is_finished(mark) or time.perf_counter() > deadline

    def _hand_device_over(self, mark: int, **asked: Any) -> None:
        """Have the device switched to the process, which takes a time that says nothing about it.

        It is noted all the same: a process could begin with its work then.
        """
        before = time.perf_counter()
        self.child.post("go", mark=mark, places=True, **asked)
        ready = self.child.answer("go", self.limits.load_seconds)
        self._switching_seconds = time.perf_counter() - before
        if ready.get("ready") != mark:
            self.child.kill()
            raise ChildFailed("protocol", "no device was taken over", self.child.read_log())

    def _take_device_back(self) -> None:
        """The same at the end: it takes longer if the process's work still goes on."""
        before = time.perf_counter()
        self._probe.zero_()
        torch.cuda.synchronize()
        self._switching_seconds += time.perf_counter() - before

    def _learn_places(self, reported: Any, count: int) -> None:
        self.room.understand(reported, count, self._memory.strides)
        self._device_room.meet_chunks(self.child, self.limits.load_seconds)
        self._device_room.find_results(self._memory.outputs)
