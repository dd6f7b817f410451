"""Runs of the training experiment: each with one proposer, all at once, resumable."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path

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
    StepProposed,
    Task,
)
from kernel_smith.runs.campaign import Campaign, Key, OutOfTime
from kernel_smith.runs.first_programs import begin_with
from kernel_smith.runs.loop import Audience
from kernel_smith.runs.presets import find_preset
from kernel_smith.runs.state import RunState

BACKEND = "cpp"
BEGIN = time.monotonic()


def say(what: str) -> None:
    print(f"[{time.monotonic() - BEGIN:6.1f} s] {what}", flush=True)


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


class Runs(Campaign):
    """The runs of the experiment."""

    def do_all(self, work: Sequence[Callable[[], None]], at_once: int) -> None:
        """Raises `OutOfTime` where some of the work is left."""
        errors = self.do(work, at_once)
        for error in errors:
            if not isinstance(error, OutOfTime):
                say(f"a run failed: {error!r}")
        if errors:
            raise OutOfTime(f"{len(errors)} of {len(work)} runs are left.")

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
        def timed_beside(state: RunState) -> tuple[Evaluator, Audience]:
            timed = BesideParent(engine, state)
            return timed, timed.hear

        watch = timed_beside if beside else None
        return self.search(key, task, config, engine, make_workers, watch)


def starting(task: Task) -> Candidate:
    return Candidate(
        backend=BACKEND, source=Path(task.starts[BACKEND]).read_text(), name="start.py"
    )


def configured(task: Task, proposers: Sequence[str], budget: Budget, *, seed: bool) -> RunConfig:
    config = find_preset("embedded", BACKEND)
    update = {"proposers": dict.fromkeys(proposers, 1.0), "budget": budget}
    return begin_with(config.model_copy(update=update), task, [starting(task)], with_seed=seed)
