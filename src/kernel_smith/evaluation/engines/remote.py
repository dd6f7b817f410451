"""Evaluations by a service elsewhere, as if by a pool on this machine.

One thread talks to the service. It sends what was submitted in batches, follows the changes of the
client's jobs on one connection, and fetches what has ended. Outages shorter than its patience go
unnoticed: the service keeps its jobs, and whoever asks twice for the same gets the same job.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from kernel_smith.closing import ClosingInAHurry
from kernel_smith.evaluation.engines.remote_calls import Calls
from kernel_smith.evaluation.engines.remote_jobs import Asked, RemoteJobs
from kernel_smith.records import Candidate, Evaluation, JobRequest, Options, Task

_HURRY_SECONDS = 5.0

Result = TypeVar("Result")


class RemoteEngine(ClosingInAHurry):
    """`with RemoteEngine("http://127.0.0.1:8300") as engine: engine.submit(task, candidate)`.

    `patience`: for how many seconds a service that does not answer, or takes no jobs, is asked
    again. How long an evaluation may wait in the service's queue is not limited.
    """

    def __init__(self, url: str, token: str | None = None, *, patience: float = 300.0) -> None:
        self._calls = Calls(url, token, patience)
        self._jobs = RemoteJobs(self._calls)
        self._lock = threading.Lock()
        self._closed = False
        self._answered: dict[str, int] = {}  # how often, by what was asked for
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._loop.call_soon_threadsafe(self._jobs.start)

    def submit(
        self,
        task: Task,
        candidate: Candidate,
        options: Options | None = None,
        *,
        beside: Candidate | None = None,
    ) -> Future[Evaluation]:
        """The evaluation, in the future. Cancelling works until the service has begun with it."""
        # Where files lie here means nothing there.
        sent = task.model_copy(update={"path": None, "starts": {}})
        request = JobRequest(
            task=sent, candidate=candidate, options=options or Options(), beside=beside
        )
        content = request.key
        with self._lock:
            # What was answered is asked for to be measured anew, as a pool here would do.
            request = request.model_copy(update={"repeat": self._answered.get(content, 0)})
        asked = Asked(request, request.model_dump_json())
        with self._lock:
            if self._closed:
                raise RuntimeError("the engine is closed")
            self._loop.call_soon_threadsafe(self._jobs.add, asked)
        asked.future.add_done_callback(lambda future: self._after(asked, content))
        return asked.future

    def _after(self, asked: Asked, content: str) -> None:
        if not asked.future.cancelled():
            with self._lock:
                self._answered[content] = asked.request.repeat + 1
        else:
            with contextlib.suppress(RuntimeError):  # the engine was closed meanwhile
                self._loop.call_soon_threadsafe(self._jobs.forget, asked)

    def capacity(self) -> int:
        """How many candidates the service evaluates at once."""
        return self._wait_for(self._calls.capacity())

    def health(self) -> dict[str, Any]:
        """How the service is: whether it is `ready` for jobs, and how its evaluations fare."""
        return self._wait_for(self._calls.health())

    def _close(self, hurry: bool) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
        try:
            with contextlib.suppress(TimeoutError):
                limit = _HURRY_SECONDS if hurry else None
                self._wait_for(asyncio.wait_for(self._jobs.finish(hurry), limit))
        finally:
            self._wait_for(self._jobs.stop())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _wait_for(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
