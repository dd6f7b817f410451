"""Many runs in one store: by method, task and seed, side by side, and resumable.

    with Store.open(path, create=True) as store:
        campaign = Campaign(store)
        campaign.do([partial(search_one, campaign, key) for key in keys], at_once=4)

Which run of the campaign one is, is kept in its configuration. So a campaign that was stopped, or
killed, finds in the store what has ended and what is to be gone on with.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import NamedTuple

from kernel_smith.evaluation.engines.base import Evaluator
from kernel_smith.proposers.base import Worker
from kernel_smith.proposers.seed.make import abandon_seeds
from kernel_smith.records import RunConfig, RunStarted, Task, Unfit
from kernel_smith.runs.loop import Audience
from kernel_smith.runs.run import Run, fold
from kernel_smith.runs.state import RunState
from kernel_smith.store import RunSummary, Store

_NOTED = "experiment"

MakeWorkers = Callable[[RunState], Mapping[str, Worker]]
Watch = Callable[[RunState], tuple[Evaluator, Audience]]


class Key(NamedTuple):
    """Which run of a campaign it is. An arm is whatever is compared: a method, a model."""

    arm: str
    task: str
    seed: int


class OutOfTime(Exception):
    """Some runs are left; the next call goes on with them."""


class Campaign:
    """Runs of one store. `deadline`, by `time.monotonic`: when all are to stop."""

    def __init__(self, store: Store, deadline: float = math.inf) -> None:
        self.store = store
        self._deadline = deadline
        self._running: list[Run] = []
        self._stopped = False
        self._lock = threading.Lock()
        self._known = {key: run for run in store.runs() if (key := _key_of(store, run.id))}

    def ended(self, key: Key) -> bool:
        return key in self._known and self._known[key].state == "ended"

    def state(self, key: Key) -> RunState | None:
        """Return what is known of a run, if it was begun before this campaign was opened."""
        known = self._known.get(key)
        return fold(self.store, known.id) if known is not None else None

    @property
    def known(self) -> Mapping[Key, RunSummary]:
        return self._known

    def do(self, work: Sequence[Callable[[], None]], at_once: int) -> list[BaseException]:
        """Do all of it, and return what went wrong: `OutOfTime` for each that is left."""
        until = self._deadline - time.monotonic()
        timer = threading.Timer(max(0.0, until), self.stop) if until < math.inf else None
        if timer is not None:
            timer.start()
        try:
            with ThreadPoolExecutor(at_once) as threads:
                futures = [threads.submit(self._in_time, each) for each in work]
        finally:  # also where somebody pressed Ctrl-C
            if timer is not None:
                timer.cancel()
            self._stop_runs()
            abandon_seeds()  # whose runs have returned
        return [error for future in futures if (error := future.exception()) is not None]

    def search(
        self,
        key: Key,
        task: Task,
        config: RunConfig,
        engine: Evaluator,
        make_workers: MakeWorkers | None = None,
        watch: Watch | None = None,
    ) -> RunState:
        """Begin a run, or go on with it, until it ends. Raises `OutOfTime`.

        `make_workers` makes those that take the places of the configured ones. `watch` puts
        something before the engine, and watches the events.
        """
        with self._open(key, task, config) as run:
            judge, audience = watch(run.state) if watch is not None else (engine, _nobody)
            workers = make_workers(run.state) if make_workers is not None else None
            with self._lock:
                self._running.append(run)
            self._in_time(lambda: None)
            run.search(judge, audience, workers=workers)
            if run.stopping:
                raise OutOfTime
            return run.state

    def give_up(self, key: Key, task: Task, config: RunConfig, unfit: Unfit, why: str) -> RunState:
        """End a run whose task cannot be judged: it is known then, and not tried again."""
        with self._open(key, task, config) as run:
            return run.end(why, unfit)

    def stop(self) -> None:
        """Have everything under way return soon, and begin with nothing more. What is left is
        gone on with by another campaign. May be called from any thread."""
        self._stopped = True
        self._stop_runs()

    def _stop_runs(self) -> None:
        with self._lock:
            for run in self._running:
                run.stop()

    def _open(self, key: Key, task: Task, config: RunConfig) -> AbstractContextManager[Run]:
        known = self._known.get(key)
        if known is not None:
            return Run.resume(self.store, known.id)
        noted = config.settings | {_NOTED: key._asdict()}
        config = config.model_copy(update={"settings": noted, "seed": key.seed})
        return Run.start(self.store, task, config)

    def _in_time(self, work: Callable[[], None]) -> None:
        if self._stopped or time.monotonic() >= self._deadline:
            raise OutOfTime
        work()


def _nobody(event: object, state: RunState) -> None:
    """Watches nothing."""


def _key_of(store: Store, run: str) -> Key | None:
    _, first = next(store.events(run))
    assert isinstance(first, RunStarted)
    noted = first.config.settings.get(_NOTED)
    return Key(**noted) if noted else None
