"""Devices that are not there: each evaluation holds one for a while, and its result is made up.

For finding out what a service or a run can keep busy. All devices share one thread, which sleeps
until the next of them is free, so ten thousand cost hardly more than one. How long a candidate
takes and how it ends follow from its hash; the record says that nothing was measured.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import math
import threading
import time
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from kernel_smith.closing import ClosingInAHurry
from kernel_smith.errors import BadInput, InternalError
from kernel_smith.evaluation.engines.made_up import made_up, made_up_beside
from kernel_smith.records import Candidate, Environment, Evaluation, Options, Reason, Task

_ENVIRONMENT = Environment(
    **dict.fromkeys(("machine", "processor", "kernel", "python", "torch", "compiler"), "simulated"),
    kernel_smith=version("kernel-smith"),
)
_SHARE_THAT_FAILS = 0.3
_FAILURES = (
    Reason.COMPILER_REJECTED,
    Reason.EXCEPTION,
    Reason.CRASHED,
    Reason.WRONG_VALUES,
    Reason.DECOY_KERNEL,
)


@dataclass(eq=False)
class _Job:
    task: Task
    candidate: Candidate
    options: Options
    beside: Candidate | None
    future: Future[Evaluation] = field(default_factory=Future)


class SimulatedEngine(ClosingInAHurry):
    """`with SimulatedEngine(1000) as engine: future = engine.submit(task, candidate)`.

    An evaluation takes half of `seconds` to one and a half times that, `seconds` on average.
    """

    def __init__(self, devices: int, seconds: float = 0.5) -> None:
        if devices < 1 or not math.isfinite(seconds) or seconds < 0:
            raise BadInput(
                f"{devices} simulated devices that take {seconds} s cannot be had",
                hint="ask for one device or more, and for 0 seconds or more",
            )
        self._devices = devices
        self._seconds = seconds
        self._waiting: deque[_Job] = deque()
        self._begun: list[tuple[float, int, _Job]] = []  # a heap: who ends first
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="simulated devices", daemon=True)
        self._thread.start()

    def submit(
        self,
        task: Task,
        candidate: Candidate,
        options: Options | None = None,
        /,
        *,
        beside: Candidate | None = None,
    ) -> Future[Evaluation]:
        """The evaluation, in the future. Cancelling works until a device has begun with it."""
        job = _Job(task, candidate, options or Options(), beside)
        with self._changed:
            if self._closed:
                raise RuntimeError("the engine is closed")
            self._waiting.append(job)
            self._begin()
        return job.future

    def capacity(self) -> int:
        return self._devices

    def health(self) -> dict[str, Any]:
        with self._changed:
            return {
                "ready": not self._closed,
                "lanes": self._devices,
                "waiting": len(self._waiting),
                "busy": len(self._begun),
            }

    def _close(self, hurry: bool) -> None:
        with self._changed:
            self._closed = True
            waiting = list(self._waiting)
            self._waiting.clear()
            abandoned = [job for _, _, job in self._begun] if hurry else []
            if hurry:
                self._begun.clear()
            self._changed.notify()
        for job in waiting:
            job.future.cancel()
        for job in abandoned:
            job.future.set_exception(InternalError("the evaluation was abandoned"))
        self._thread.join()

    def _begin(self) -> None:
        """Put what waits on devices that are free; the caller holds the lock."""
        while self._waiting and len(self._begun) < self._devices:
            job = self._waiting.popleft()
            if job.future.set_running_or_notify_cancel():
                end = time.monotonic() + self._seconds * (0.5 + _draw("seconds", job.candidate))
                heapq.heappush(self._begun, (end, next(self._numbers), job))
                if self._begun[0][2] is job:
                    self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._is_due():
                    if self._closed and not self._begun:
                        return
                    self._changed.wait(
                        self._begun[0][0] - time.monotonic() if self._begun else None
                    )
                ended = []
                while self._is_due():
                    ended.append(heapq.heappop(self._begun)[2])
                self._begin()
            for job in ended:
                job.future.set_result(_evaluation(job))

    def _is_due(self) -> bool:
        return bool(self._begun) and self._begun[0][0] <= time.monotonic()


def _draw(what: str, candidate: Candidate) -> float:
    """A number from 0 up to 1 that is always the same for this candidate."""
    digest = hashlib.sha256(f"{what} {candidate.content_hash}".encode()).digest()
    return int.from_bytes(digest[:4]) / 2**32


def _evaluation(job: _Job) -> Evaluation:
    alone = _simulated(job.task, job.candidate, job.options)
    if job.beside is None:
        return alone
    return made_up_beside(alone, _simulated(job.task, job.beside, job.options))


def _simulated(task: Task, candidate: Candidate, options: Options) -> Evaluation:
    luck = _draw("verdict", candidate)
    outcome: float | Reason = 0.5 + 2 * luck
    if luck < _SHARE_THAT_FAILS:
        outcome = _FAILURES[int(luck / _SHARE_THAT_FAILS * len(_FAILURES))]
    return made_up(task, candidate, outcome, baselines=options.baselines, environment=_ENVIRONMENT)
