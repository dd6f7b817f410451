"""Runs of the training experiment: each with one proposer, all at once, resumable."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from kernel_smith.evaluation.engines.base import Evaluator
from kernel_smith.proposers.base import NothingToPropose, Worker
from kernel_smith.records import (
    Budget,
    Candidate,
    Evaluation,
    Event,
    Note,
    Options,
    Proposal,
    Request,
    RunConfig,
    RunStarted,
    StepProposed,
    Task,
)
from kernel_smith.runs.first_programs import begin_with
from kernel_smith.runs.presets import find_preset
from kernel_smith.runs.run import Run
from kernel_smith.runs.state import RunState
from kernel_smith.store import Store

BACKEND = "cpp"
BEGIN = time.monotonic()


def say(what: str) -> None:
    print(f"[{time.monotonic() - BEGIN:6.1f} s] {what}", flush=True)


class Key(NamedTuple):
    """Which run of the experiment it is; kept in the run's own configuration."""

    arm: str
    task: str
    seed: int


class OutOfTime(Exception):
    """The next call goes on."""


class Counted:
    """A worker who may be asked for so many proposals and no more."""

    begins = False

    def __init__(self, worker: Worker, left: int) -> None:
        self.name = worker.name
        self.learn = worker.learn
        self.close = worker.close
        self._worker = worker
        self._left = left
        self._lock = threading.Lock()

    def start(self, request: Request) -> Future[Proposal | Note]:
        with self._lock:
            if self._left <= 0:
                nothing: Future[Proposal | Note] = Future()
                nothing.set_exception(NothingToPropose("all that may be asked for was asked for"))
                return nothing
            self._left -= 1
        future = self._worker.start(request)
        future.add_done_callback(self._count_back)
        return future

    def _count_back(self, future: Future[Proposal | Note]) -> None:
        if not future.cancelled() and isinstance(future.exception(), NothingToPropose):
            with self._lock:
                self._left += 1


class BesideParent:
    """Has each program of a run timed beside its parent, in the same rounds."""

    def __init__(self, engine: Evaluator, state: RunState) -> None:
        self._engine = engine
        self._parents: dict[str, Candidate] = {}
        for step in state.in_flight():
            self._note(step.proposal, state)

    def hear(self, event: Event, state: RunState) -> None:
        if isinstance(event, StepProposed):
            self._note(event.proposal, state)

    def _note(self, proposal: Proposal, state: RunState) -> None:
        if proposal.parents:
            parent = state.evaluated[proposal.parents[0]].candidate
            self._parents[proposal.candidate.content_hash] = parent

    def submit(
        self,
        task: Task,
        candidate: Candidate,
        options: Options | None = None,
        /,
        *,
        beside: Candidate | None = None,
    ) -> Future[Evaluation]:
        beside = beside or self._parents.get(candidate.content_hash)
        return self._engine.submit(task, candidate, options, beside=beside)


class Runs:
    """Many runs at once, in one store; those that were stopped go on, all stop when time is up."""

    def __init__(self, store: Store, deadline: float) -> None:
        self.store = store
        self._deadline = deadline
        self._running: list[Run] = []
        self._lock = threading.Lock()
        self.known = {key: summary for summary in store.runs() if (key := _key(store, summary.id))}

    def ended(self, key: Key) -> bool:
        return key in self.known and self.known[key].state == "ended"

    def do(self, work: Sequence[Callable[[], None]], at_once: int) -> None:
        """Raises `OutOfTime` where some of the work is left."""
        timer = threading.Timer(max(0.0, self._deadline - time.monotonic()), self._stop)
        timer.start()
        try:
            with ThreadPoolExecutor(at_once) as threads:
                futures = [threads.submit(self._in_time, each) for each in work]
        finally:  # also where somebody pressed Ctrl-C
            timer.cancel()
            self._stop()
        errors = [error for future in futures if (error := future.exception()) is not None]
        for error in errors:
            if not isinstance(error, OutOfTime):
                say(f"a run failed: {error!r}")
        if errors:
            raise OutOfTime(f"{len(errors)} of {len(futures)} runs are left.")

    def _in_time(self, work: Callable[[], None]) -> None:
        if time.monotonic() >= self._deadline:
            raise OutOfTime
        work()

    def _stop(self) -> None:
        with self._lock:
            for run in self._running:
                run.stop()

    def evolve(
        self,
        key: Key,
        task: Task,
        config: RunConfig,
        make_workers: Callable[[RunState], dict[str, Worker]],
        engine: Evaluator,
        *,
        beside: bool,
    ) -> RunState:
        settings = config.settings | {"experiment": key._asdict()}
        config = config.model_copy(update={"settings": settings, "seed": key.seed})
        if key in self.known:
            opened = Run.resume(self.store, self.known[key].id)
        else:
            opened = Run.start(self.store, task, config)
        with opened as run:
            workers = make_workers(run.state)
            timed = BesideParent(engine, run.state)
            audience = timed.hear if beside else lambda *_: None
            with self._lock:
                self._running.append(run)
            self._in_time(lambda: None)
            run.search(timed if beside else engine, audience, workers=workers)
            if run.stopping:
                raise OutOfTime
            return run.state


def _key(store: Store, run: str) -> Key | None:
    _, first = next(store.events(run))
    assert isinstance(first, RunStarted)
    noted = first.config.settings.get("experiment")
    return Key(**noted) if noted else None


def starting(task: Task) -> Candidate:
    return Candidate(
        backend=BACKEND, source=Path(task.starts[BACKEND]).read_text(), name="start.py"
    )


def configured(task: Task, proposers: Sequence[str], budget: Budget, *, seed: bool) -> RunConfig:
    config = find_preset("embedded", BACKEND)
    update = {"proposers": dict.fromkeys(proposers, 1.0), "budget": budget}
    return begin_with(config.model_copy(update=update), task, [starting(task)], with_seed=seed)
