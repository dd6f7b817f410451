"""Starting a run, going on with one, and adding a single step from outside."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from queue import SimpleQueue

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines.base import Evaluator
from kernel_smith.proposers.base import Worker
from kernel_smith.records import (
    Budget,
    Candidate,
    Evaluation,
    Event,
    Proposal,
    RunConfig,
    RunEnded,
    RunResumed,
    RunStarted,
    StepEvaluated,
    StepProposed,
    Task,
    Unfit,
)
from kernel_smith.runs.first_programs import first_programs
from kernel_smith.runs.loop import Audience, Loop
from kernel_smith.runs.presets import PROTOCOLS
from kernel_smith.runs.remeasure import Remeasuring
from kernel_smith.runs.state import RunState
from kernel_smith.runs.winners import finds_at, finds_of_store, nearest_winners
from kernel_smith.runs.workers import race_of, workers_of
from kernel_smith.search.base import Strategy
from kernel_smith.search.context import KNOWLEDGE, PLACES
from kernel_smith.search.methods import make_strategy
from kernel_smith.store import OUTSIDE, Store


@dataclass
class Run:
    """A run that this process may write to."""

    store: Store
    state: RunState
    strategy: Strategy
    begun: RunStarted | RunResumed | None = None
    stopping: bool = False
    _loop: Loop | None = None

    @classmethod
    @contextlib.contextmanager
    def start(cls, store: Store, task: Task, config: RunConfig) -> Iterator[Run]:
        now = datetime.now(UTC)
        name = f"{task.name}-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        config = _with_winners(store, task, config)
        strategy = make_strategy(config)
        with store.lock(name):
            event = RunStarted(run=name, task=task, config=config, at=now)
            store.append(name, event)
            yield cls(store, RunState.begin(event), strategy, event)

    @classmethod
    @contextlib.contextmanager
    def resume(
        cls, store: Store, name: str, rebudget: Callable[[Budget], Budget] | None = None
    ) -> Iterator[Run]:
        """What was proposed and not finished is in `state.in_flight()`."""
        with cls.open(store, name) as run:
            budget = rebudget(run.state.config.budget) if rebudget else None
            run.begun = RunResumed(budget=budget, at=datetime.now(UTC))
            run._emit(run.begun)
            yield run

    @classmethod
    @contextlib.contextmanager
    def open(cls, store: Store, name: str) -> Iterator[Run]:
        """For a single step from outside: a run that had ended has ended still."""
        with store.lock(name):
            yield cls(store, *replay(store, name))

    def append(self, event: Event) -> None:
        self.store.append(self.state.run, event)

    def evolve(
        self,
        workers: Mapping[str, Worker],
        engine: Evaluator,
        audience: Audience,
    ) -> Loop:
        """Return a loop, ready to run; whoever holds it can stop it."""
        if self.begun is not None:
            audience(self.begun, self.state)
        for step in self.state.steps.values():
            worker = workers.get(step.proposal.proposer)
            name = step.proposal.candidate.content_hash
            judged = step.evaluation is not None and name not in self.state.ranking.challenges
            if worker is not None and judged:
                worker.learn(step.proposal, self.state.evaluated[name].evaluation)
        loop = Loop(self.state, self.strategy, workers, engine, self.append, audience)
        loop.resubmit(self.state.in_flight())
        return loop

    def search(
        self,
        engine: Evaluator,
        audience: Audience = lambda event, state: None,
        *,
        workers: Mapping[str, Worker] | None = None,
    ) -> str:
        """Begin, or go on, until there is a reason to stop; return the reason.

        `workers` take the places of those that the configuration names.
        """
        with contextlib.ExitStack() as stack:
            if workers is None:
                state = self.state
                made = workers_of(state.config, state.usage, engine, state.recall)
                workers = stack.enter_context(made)
            self._loop = self.evolve(workers, engine, audience)
            self._loop.stopping = self.stopping
            race = race_of(self.state.config, engine)
            return self._loop.run(first_programs(self.state, race), self.state.seconds)

    def end(self, why: str, unfit: Unfit) -> RunState:
        """End the run without a search: its task cannot be judged."""
        self._emit(RunEnded(why=why, unfit=unfit, at=datetime.now(UTC)))
        return self.state

    def stop(self) -> None:
        """Have the search return soon; what is under way is done again when the run is resumed.
        May be called from any thread, or from a signal's handler."""
        self.stopping = True
        if self._loop is not None:
            self._loop.stopping = True

    def tell(
        self,
        candidate: Candidate,
        engine: Evaluator,
        parent: str | None,
        summary: str,
        audience: Audience = lambda event, state: None,
    ) -> int:
        """Evaluate a candidate that somebody outside proposes; the number of its step.

        `audience` hears of it, and of what is measured again where it takes the lead.
        """

        def emit(event: Event) -> None:
            self._emit(event)
            audience(event, self.state)

        if self.state.is_known(candidate):
            raise BadInput(
                f"{candidate.name}: this program, up to its looks, is part of the run already",
                hint="change it, or see `kernel-smith runs show` for what came of it",
            )
        number, now = self.state.last_step + 1, datetime.now(UTC)
        parents = (parent,) if parent else ()
        proposal = Proposal(candidate=candidate, proposer=OUTSIDE, parents=parents, summary=summary)
        emit(StepProposed(step=number, proposal=proposal, at=now))
        begin = time.monotonic()
        evaluation = engine.submit(self.state.task, candidate, self.state.config.options).result()
        spent, now = time.monotonic() - begin, datetime.now(UTC)
        emit(StepEvaluated(step=number, evaluation=evaluation, seconds=spent, at=now))
        self._measure_again(engine, emit)
        return number

    def _measure_again(self, engine: Evaluator, emit: Callable[[Event], None]) -> None:
        """Measure a challenger, and whom it challenges, before anybody goes on."""
        done: SimpleQueue[Future[Evaluation]] = SimpleQueue()
        remeasuring = Remeasuring(self.state, engine, done.put)
        remeasuring.add_open()
        while remeasuring:
            if remeasuring.waiting:
                remeasuring.submit()
            emit(remeasuring.take(done.get()))

    def _emit(self, event: Event) -> None:
        self.append(event)
        self.state.apply(event)
        self.strategy.hear(event, self.state)


def _with_winners(store: Store, task: Task, config: RunConfig) -> RunConfig:
    """Keep in the configuration what a model is shown of other tasks, except where it is to write
    from the reference alone."""
    if "model" not in config.proposers or config.method in PROTOCOLS:
        return config
    places = config.settings.get(KNOWLEDGE, {}).get(PLACES, ())
    finds = [finds_at(Path(place), config.backend) for place in places]
    winners = nearest_winners(task, chain(finds_of_store(store, config.backend), *finds))
    if not winners:
        return config
    kept = {KNOWLEDGE: {PLACES: places, "winners": [each.model_dump() for each in winners]}}
    return config.model_copy(update={"settings": config.settings | kept})


def fold(store: Store, name: str) -> RunState:
    """Return the state of a run, from all of its events."""
    first, later = _events(store, name)
    state = RunState.begin(first)
    for event in later:
        state.apply(event)
    return state


def replay(store: Store, name: str) -> tuple[RunState, Strategy]:
    """Return the state of a run, and its method as far as it has come."""
    first, later = _events(store, name)
    state, strategy = RunState.begin(first), make_strategy(first.config)
    for event in later:
        state.apply(event)
        strategy.hear(event, state)
    return state, strategy


def _events(store: Store, name: str) -> tuple[RunStarted, Iterator[Event]]:
    """Return the first event of a run, and the others."""
    events = (event for _, event in store.events(name))
    first = next(events, None)
    if not isinstance(first, RunStarted):
        raise BadInput(f"run {name} has no beginning", hint="see `kernel-smith runs list`")
    return first, events
