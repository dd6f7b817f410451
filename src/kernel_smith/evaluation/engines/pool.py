"""Several judges on this machine, each with a lane of its own.

Candidates are compiled and checked side by side; the judges themselves take turns where something
is timed. A lane keeps the tasks of its last candidates ready, so it prefers candidates of those.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from kernel_smith.closing import ClosingInAHurry
from kernel_smith.errors import InternalError, TookTooLong
from kernel_smith.evaluation.engines.cache import EvaluationCache
from kernel_smith.evaluation.engines.local import LocalEngine
from kernel_smith.evaluation.judge.platform.device_lock import using_device
from kernel_smith.records import Candidate, Evaluation, NsightKernel, Options, Sweep, Task

TASKS_KEPT_READY = 3
LONGEST_LOOK = 64  # how far ahead a lane looks for a candidate of a task that it has ready


@dataclass(frozen=True)
class _Job:
    task: Task
    candidate: Candidate
    work: Callable[[LocalEngine], Any]
    future: Future[Any] = field(default_factory=Future)


class LocalPool(ClosingInAHurry):
    """`with LocalPool(lanes=4) as pool: future = pool.submit(task, candidate)`.

    `patience`: seconds after which an evaluation is given up with `TookTooLong`, and its lane
    begins anew. A candidate has limits of its own; a reference that never returns has none.
    """

    def __init__(
        self, lanes: int, cache: EvaluationCache | None = None, patience: float | None = None
    ) -> None:
        self._cache = cache
        self._patience = patience
        self._waiting: deque[_Job] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._engines = [LocalEngine(cache) for _ in range(lanes)]
        self._threads = [
            threading.Thread(target=self._run_lane, args=(number,), daemon=True)
            for number in range(lanes)
        ]
        for thread in self._threads:
            thread.start()

    def submit(
        self,
        task: Task,
        candidate: Candidate,
        options: Options | None = None,
        *,
        beside: Candidate | None = None,
    ) -> Future[Evaluation]:
        """The evaluation, in the future. Cancelling works until a lane has begun with it."""

        def evaluate(engine: LocalEngine) -> Evaluation:
            return engine.evaluate(task, candidate, options, beside=beside)

        return self._enqueue(_Job(task, candidate, evaluate))

    def sweep(
        self,
        task: Task,
        parent: Candidate,
        variants: Sequence[str],
        options: Options,
        seconds: float,
        *,
        everybody: bool = False,
    ) -> Future[Sweep]:
        """The same for a sweep over variants of an accepted program."""

        def sweep(engine: LocalEngine) -> Sweep:
            return engine.sweep(task, parent, variants, options, seconds, everybody=everybody)

        return self._enqueue(_Job(task, parent, sweep))

    def counters(
        self, task: Task, candidate: Candidate, workload: str
    ) -> Future[tuple[NsightKernel, ...]]:
        """What Nsight Compute sees of an accepted program; meanwhile nobody is alone with the
        device, so nobody is timed."""

        def look(_: LocalEngine) -> tuple[NsightKernel, ...]:
            from kernel_smith.evaluation.nsight import profile_candidate

            with using_device():
                return profile_candidate(task, candidate, workload)

        return self._enqueue(_Job(task, candidate, look))

    def _enqueue(self, job: _Job) -> Future[Any]:
        with self._changed:
            if self._closed:
                raise RuntimeError("the pool is closed")
            self._waiting.append(job)
            self._changed.notify()
        return job.future

    def capacity(self) -> int:
        return len(self._engines)

    def health(self) -> dict[str, Any]:
        with self._changed:
            waiting, closed = len(self._waiting), self._closed
        lanes = sum(thread.is_alive() for thread in self._threads)
        return {"ready": not closed and lanes > 0, "lanes": lanes, "waiting": waiting}

    def _run_lane(self, number: int) -> None:
        ready: deque[str] = deque(maxlen=TASKS_KEPT_READY)
        while (job := self._next_job(ready)) is not None:
            if not job.future.set_running_or_notify_cancel():
                continue
            # The judge keeps those that were used last, so the order is that of use.
            if job.task.content_hash in ready:
                ready.remove(job.task.content_hash)
            ready.append(job.task.content_hash)
            late = threading.Event()
            try:
                with self._watch(self._engines[number], late):
                    answer = job.work(self._engines[number])
                job.future.set_result(answer)
            except BaseException as error:
                gave_up = late.is_set() and isinstance(error, InternalError)
                job.future.set_exception(self._too_long(job) if gave_up else error)
            if late.is_set():
                ready.clear()
                self._renew(number)
        self._engines[number].close()

    @contextlib.contextmanager
    def _watch(self, engine: LocalEngine, late: threading.Event) -> Iterator[None]:
        """Abandon an engine that does not answer in time, and say so by the event."""
        if self._patience is None:
            yield
            return

        def give_up() -> None:
            late.set()
            engine.abandon()

        timer = threading.Timer(self._patience, give_up)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()  # it may have begun to give up

    def _too_long(self, job: _Job) -> TookTooLong:
        return TookTooLong(
            f"judging {job.candidate.name} of task {job.task.name} did not end within "
            f"{self._patience:g} s",
            hint="see whether Model.forward and get_inputs return, or allow more time: "
            f"--patience {10 * (self._patience or 0):g}",
        )

    def _renew(self, number: int) -> None:
        """Give a lane another engine in place of the one that was abandoned."""
        self._engines[number].close()
        self._engines[number] = LocalEngine(self._cache)

    def _next_job(self, ready: deque[str]) -> _Job | None:
        """The first job of a task that is ready here, or else the first of all."""
        with self._changed:
            while not self._waiting:
                if self._closed:
                    return None
                self._changed.wait()
            for index in range(min(len(self._waiting), LONGEST_LOOK)):
                if self._waiting[index].task.content_hash in ready:
                    job = self._waiting[index]
                    del self._waiting[index]
                    return job
            return self._waiting.popleft()

    def _close(self, hurry: bool) -> None:
        if hurry:
            for engine in self._engines:
                engine.abandon()
        with self._changed:
            self._closed = True
            for job in self._waiting:
                job.future.cancel()
            self._waiting.clear()
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
