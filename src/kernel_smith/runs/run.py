"""Starting a run, going on with one, and adding a single step from outside."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines.base import Evaluator
from kernel_smith.proposers.base import Proposer
from kernel_smith.records import (
    Budget,
    Candidate,
    Event,
    Proposal,
    RunConfig,
    RunResumed,
    RunStarted,
    StepEvaluated,
    StepProposed,
    Task,
)
from kernel_smith.runs.loop import Audience, Loop
from kernel_smith.runs.remeasure import measure_again
from kernel_smith.runs.state import OUTSIDE, RunState
from kernel_smith.store import Store


@dataclass
class Run:
    """A run that this process may write to."""

    store: Store
    state: RunState
    begun: RunStarted | RunResumed | None = None

    @classmethod
    @contextlib.contextmanager
    def start(cls, store: Store, task: Task, config: RunConfig) -> Iterator[Run]:
        now = datetime.now(UTC)
        name = f"{task.name}-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        with store.lock(name):
            event = RunStarted(run=name, task=task, config=config, at=now)
            store.append(name, event)
            yield cls(store, RunState.begin(event), event)

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
            yield cls(store, fold(store, name))

    def append(self, event: Event) -> None:
        self.store.append(self.state.run, event)

    def evolve(
        self,
        proposers: dict[str, Proposer],
        engine: Evaluator,
        audience: Audience,
    ) -> Loop:
        """A loop, ready to run; whoever holds it can stop it."""
        if self.begun is not None:
            audience(self.begun, self.state)
        for step in self.state.steps.values():
            proposer = proposers.get(step.proposal.proposer)
            if proposer is not None and step.evaluation is not None:
                known = self.state.evaluated[step.proposal.candidate.content_hash]
                proposer.learn(step.proposal, known.evaluation)
        loop = Loop(self.state, proposers, engine, self.append, audience)
        loop.resubmit(self.state.in_flight())
        return loop

    def tell(
        self, candidate: Candidate, engine: Evaluator, parent: str | None, summary: str
    ) -> int:
        """Evaluate a candidate that somebody outside proposes; the number of its step."""
        if self.state.is_known(candidate):
            raise BadInput(
                f"{candidate.name}: this program, up to its looks, is part of the run already",
                hint="change it, or see `kernel-smith runs show` for what came of it",
            )
        number, now = self.state.last_step + 1, datetime.now(UTC)
        parents = (parent,) if parent else ()
        proposal = Proposal(candidate=candidate, proposer=OUTSIDE, parents=parents, summary=summary)
        self._emit(StepProposed(step=number, island=0, proposal=proposal, at=now))
        begin = time.monotonic()
        evaluation = engine.submit(self.state.task, candidate, self.state.config.options).result()
        spent, now = time.monotonic() - begin, datetime.now(UTC)
        before = self.state.best
        self._emit(StepEvaluated(step=number, evaluation=evaluation, seconds=spent, at=now))
        if before is not None and self.state.best is not before and evaluation.ok:
            for event in measure_again(self.state, engine, candidate, before):
                self._emit(event)
        return number

    def _emit(self, event: Event) -> None:
        self.append(event)
        self.state.apply(event)


def fold(store: Store, name: str) -> RunState:
    """The state of a run, from all of its events."""
    events = store.events(name)
    _, first = next(events, (0, None))
    if not isinstance(first, RunStarted):
        raise BadInput(f"run {name} has no beginning", hint="see `kernel-smith runs list`")
    state = RunState.begin(first)
    for _, event in events:
        state.apply(event)
    return state
