"""What every method of search must show before its runs can be compared with others.

    from kernel_smith.testing.method_suite import check_method

    def test_my_method_keeps_the_contract() -> None:
        check_method(MyMethod)

The method searches among programs that are numbers, with a worker that finds something better now
and then, makes mistakes, and has nothing to propose at times. Nothing is compiled.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path

from kernel_smith.proposers.base import NothingToPropose
from kernel_smith.records import (
    Budget,
    Candidate,
    Event,
    Note,
    Proposal,
    Question,
    Reason,
    Request,
    RunConfig,
    Task,
)
from kernel_smith.runs.run import Run
from kernel_smith.runs.state import RunState
from kernel_smith.search.base import Ask, Strategy
from kernel_smith.store import Store
from kernel_smith.testing.numbers import Nudger, program, speed_of
from kernel_smith.testing.trivial import TrivialEngine

_EVALUATIONS = 40
_WORKER = "model"  # so that it is asked questions, too


class _Careless(Nudger):
    """Also writes first programs, breaks one in five, declines one ask in ten, and answers
    questions with whatever comes to its mind."""

    begins = True

    name = _WORKER

    def start(self, request: Request) -> Future[Proposal | Note]:
        if request.section(Question) is None:
            return super().start(request)
        answer: Future[Proposal | Note] = Future()
        answer.set_result(Note(text=f"{request.seed} PLAN: {request.seed} | gain 1 to 2"))
        return answer

    def propose(self, request: Request) -> Proposal:
        chance = random.Random(request.seed)
        if chance.random() < 0.1:
            raise NothingToPropose("out of ideas")
        if request.parent is None:
            return Proposal(candidate=program(chance.uniform(0.5, 1.5)), proposer=self.name)
        made = super().propose(request)
        if chance.random() < 0.2:
            return made.model_copy(update={"candidate": program(-chance.random())})
        return made


class _Watched:
    """A method, with an eye on what it asks for."""

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy

    def next(self, state: RunState, free: Sequence[str], rng: random.Random) -> Ask | None:
        asked = self._strategy.next(state, free, rng)
        if asked is not None:
            assert asked.worker in free, f"{asked.worker} was asked, and is not free: {free}"
            parent = state.evaluated.get(asked.parent or "")
            assert asked.parent is None or parent is not None, "the parent is no program of the run"
            assert parent is None or parent.evaluation.ok, "the parent does not work"
        return asked

    def hear(self, event: Event, state: RunState) -> None:
        self._strategy.hear(event, state)


def check_method(make: Callable[[RunConfig], Strategy], **changes: object) -> None:
    """Fail with an `AssertionError` where a method breaks the contract of `search/base.py`.

    `changes` are to the configuration of the run.
    """
    budget = Budget(evaluations=_EVALUATIONS)
    config = RunConfig(backend="cpp", proposers={_WORKER: 1.0}, budget=budget)
    config = config.model_copy(update={"proposals_in_flight": 1, **changes})
    task = Task(name="numbers", source="class Model: pass")
    with (
        tempfile.TemporaryDirectory() as folder,
        Store.open(Path(folder) / "runs.sqlite", create=True) as store,
        Run.start(store, task, config) as run,
    ):
        strategy = make(config)
        run.strategy = _Watched(strategy)
        run.search(TrivialEngine(_judge), workers={_WORKER: _Careless()})
        assert run.state.steps, "nothing was ever asked for"
        events = [event for _, event in store.events(run.state.run)]
    state, rebuilt = _replayed(make(config), events)
    assert _asks(rebuilt, state) == _asks(strategy, run.state), (
        "rebuilt from the events of its run it asks for something else: what it knows is to follow "
        "from what it hears, and chance from the generator that it is given"
    )


def _judge(candidate: Candidate) -> float | Reason:
    return speed_of(candidate) if speed_of(candidate) > 0 else Reason.WRONG_VALUES


def _replayed(strategy: Strategy, events: list[Event]) -> tuple[RunState, Strategy]:
    state = RunState.begin(events[0])  # type: ignore[arg-type]
    for event in events[1:]:
        state.apply(event)
        strategy.hear(event, state)
    return state, strategy


def _asks(strategy: Strategy, state: RunState) -> list[Ask | str | None]:
    rng = random.Random(1)
    try:
        return [strategy.next(state, [_WORKER], rng) for _ in range(10)]
    except Exception as end:
        return [repr(end)]
