"""Keeps an engine busy with the jobs of a book, and writes down what comes out.

One thread does both. Whatever an engine raises becomes a job's error, and whatever the book raises
is tried again: neither ends the thread, and no answer is lost to a disk that is full for a while.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import TypedDict

from kernel_smith.errors import UserError
from kernel_smith.evaluation.engines.base import Evaluator
from kernel_smith.evaluation.engines.pool import TASKS_KEPT_READY
from kernel_smith.evaluation.service.book import JobBook, Taken
from kernel_smith.records import Evaluation
from kernel_smith.records.job import JobError

_LOG = logging.getLogger(__name__)

_PURGE_SECONDS = 60.0
_LOOK_SECONDS = 1.0  # how often an engine is asked how much it can do
_SECONDS_AFTER_TROUBLE = 1.0
_MOST_STORED_AT_ONCE = 256


class Health(TypedDict):
    alive: bool
    running: int
    last_finished_at: str | None
    consecutive_internal_errors: int


def _nobody(kind: str, seconds: float) -> None:
    """The default audience for jobs that ended."""


@dataclass(eq=False)
class _UnderWay:
    job: Taken
    future: Future[Evaluation] | None = None
    begun: float = field(default_factory=time.monotonic)


class Dispatcher:
    """`dispatcher.start()`, and at the end `dispatcher.drain(60)` and `dispatcher.close()`.

    `capacity`: how many jobs the engine gets at once; or whom to ask now and then, because it
    changes. `on_finished(kind, seconds)` is called for each job that ended; the kind is `done`,
    `cancelled` or that of its error.
    """

    def __init__(
        self, book: JobBook, engine: Evaluator, *, capacity: int | Callable[[], int]
    ) -> None:
        self.on_finished: Callable[[str, float], None] = _nobody
        self._book = book
        self._engine = engine
        self._ask_capacity = capacity if callable(capacity) else None
        self._capacity = capacity if isinstance(capacity, int) else 0
        self._asked_capacity = -_LOOK_SECONDS
        self._ready: deque[str] = deque()
        self._running: dict[str, _UnderWay] = {}
        self._ended: deque[_UnderWay] = deque()
        self._changed = threading.Condition()
        self._draining = False
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self._purged = time.monotonic()
        self._last_finished: datetime | None = None
        self._internal_errors = 0
        self._thread = threading.Thread(target=self._run, name="dispatcher", daemon=True)
        book.on_waiting(self._wake.set)

    @property
    def capacity(self) -> int:
        """As it was known last."""
        return self._capacity

    def start(self) -> None:
        self._look_at_capacity()
        self._wake.set()
        self._thread.start()

    def drain(self, seconds: float) -> int:
        """Begin nothing more, wait for what is under way, give back what takes longer.

        Returns the number of jobs given back.
        """
        with self._changed:
            self._draining = True
            self._changed.wait_for(lambda: not self._running, seconds)
            left = list(self._running.values())
            self._running.clear()
            self._changed.notify_all()
        return sum(self._give_back(under_way) for under_way in left)

    def close(self) -> None:
        """What is still under way is given back."""
        self.drain(0)
        self._stopped.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def health(self) -> Health:
        last = self._last_finished
        return {
            "alive": self._thread.is_alive(),
            "running": len(self._running),
            "last_finished_at": last.isoformat() if last is not None else None,
            "consecutive_internal_errors": self._internal_errors,
        }

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._wake.wait(_PURGE_SECONDS if self._ask_capacity is None else _LOOK_SECONDS)
            self._wake.clear()
            self._look_at_capacity()
            try:
                self._store_outcomes()
                self._fill()
                self._purge_now_and_then()
            except Exception:
                _LOG.exception("the job book cannot be used; trying again")
                self._stopped.wait(_SECONDS_AFTER_TROUBLE)
                self._wake.set()

    def _look_at_capacity(self) -> None:
        now = time.monotonic()
        if self._ask_capacity is None or now - self._asked_capacity < _LOOK_SECONDS:
            return
        self._asked_capacity = now
        try:
            self._capacity = self._ask_capacity()
        except Exception:
            _LOG.exception("the engine does not say how much it can do; it was %d", self._capacity)

    def _fill(self) -> None:
        with self._changed:
            room = self._capacity - len(self._running)
            if self._draining or room <= 0:
                return
            taken = [_UnderWay(job) for job in self._book.take(room, tuple(self._ready))]
            # Before the engine has them: a drain that begins now must know of them.
            self._running.update((under_way.job.id, under_way) for under_way in taken)
        for under_way in taken:
            self._begin(under_way)

    def _begin(self, under_way: _UnderWay) -> None:
        request = under_way.job.request
        if request.task.content_hash not in self._ready:
            self._ready.append(request.task.content_hash)
        while len(self._ready) > TASKS_KEPT_READY * self._capacity:
            self._ready.popleft()
        try:
            future = self._engine.submit(
                request.task, request.candidate, request.options, beside=request.beside
            )
        except Exception as error:
            future = Future()
            future.set_exception(error)
        under_way.future = future
        future.add_done_callback(lambda _: self._note_end(under_way))

    def _note_end(self, under_way: _UnderWay) -> None:
        """In a thread of the engine."""
        self._ended.append(under_way)
        self._wake.set()

    def _store_outcomes(self) -> None:
        """Many at once cost the book hardly more than one; between them, lanes are filled."""
        while self._ended:
            ended = list(islice(self._ended, _MOST_STORED_AT_ONCE))
            # Without those that were given back meanwhile.
            self._store([each for each in ended if self._running.get(each.job.id) is each])
            # Only now: had the book failed, it would be tried again.
            for _ in ended:
                self._ended.popleft()
            with self._changed:
                for each in ended:
                    self._running.pop(each.job.id, None)
                self._changed.notify_all()
            self._fill()

    def _store(self, ended: list[_UnderWay]) -> None:
        outcomes: list[tuple[str, Evaluation | JobError]] = []
        begun: list[float] = []
        for each in ended:
            assert each.future is not None
            if each.future.cancelled():
                self._book.give_back(each.job.id)
            else:
                outcomes.append((each.job.id, outcome_of(each.job, each.future)))
                begun.append(each.begun)
        counted = self._book.end_many(outcomes) if outcomes else []
        for (_, outcome), counts, since in zip(outcomes, counted, begun, strict=True):
            kind = "done" if isinstance(outcome, Evaluation) else outcome.kind
            self._internal_errors = self._internal_errors + 1 if kind == "internal" else 0
            self._last_finished = datetime.now(UTC)
            self._tell(kind if counts else "cancelled", time.monotonic() - since)

    def _tell(self, kind: str, seconds: float) -> None:
        try:
            self.on_finished(kind, seconds)
        except Exception:
            _LOG.exception("whoever counts finished jobs failed")

    def _give_back(self, under_way: _UnderWay) -> bool:
        if under_way.future is not None:
            under_way.future.cancel()
        try:
            return self._book.give_back(under_way.job.id, counts=False)
        except UserError:
            _LOG.exception("job %s is given back when the book is opened next", under_way.job.id)
            return False

    def _purge_now_and_then(self) -> None:
        if time.monotonic() - self._purged >= _PURGE_SECONDS:
            self._purged = time.monotonic()
            self._book.purge()


def outcome_of(job: Taken, future: Future[Evaluation]) -> Evaluation | JobError:
    """What became of a job: the evaluation if it is one of this candidate, or what was wrong."""
    request = job.request
    try:
        evaluation = future.result()
        wanted = (request.task.content_hash, request.candidate.content_hash)
        if (evaluation.task_hash, evaluation.candidate_hash) != wanted:
            return JobError(kind="internal", what="the evaluation is one of another candidate")
        evaluation.model_dump_json()  # it fails here, or it would each time it is stored
        return evaluation
    except UserError as error:
        return JobError.of(error)
    except BaseException as error:  # the engine's, and not meant for this thread
        _LOG.error("job %s failed", job.id, exc_info=error)
        return JobError.of(error)
