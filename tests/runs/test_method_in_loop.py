"""The loop does what a method asks for, and tells it all that comes of it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kernel_smith.errors import BadInput
from kernel_smith.records import (
    Declined,
    Event,
    Note,
    Noted,
    Proposal,
    Request,
    RunConfig,
    RunStarted,
    StepProposed,
    Task,
    Usage,
)
from kernel_smith.records.step import Conversation
from kernel_smith.runs.loop import Loop
from kernel_smith.runs.run import Run, replay
from kernel_smith.runs.state import RunState
from kernel_smith.search.base import Ask, Exhausted
from kernel_smith.store import Store
from kernel_smith.testing.numbers import Nudger, program, speed_of
from kernel_smith.testing.trivial import TrivialEngine

SPENT = Usage(prompt_tokens=10, requests=1)


class Scripted:
    """Asks for these, one after the other, and notes what it hears."""

    def __init__(self, script: Sequence[Ask | None], end: str | None = "that was all") -> None:
        self._script = list(script)
        self._end = end
        self.heard: list[Event] = []

    def next(self, state: RunState, free: Sequence[str], rng: random.Random) -> Ask | None:
        if self._script:
            return self._script.pop(0)
        if self._end is None:
            return None
        raise Exhausted(self._end)

    def hear(self, event: Event, state: RunState) -> None:
        self.heard.append(event)


class Thinker(Nudger):
    """Answers with a thought."""

    def start(self, request: Request) -> Future[Proposal | Note]:
        said = Conversation(model="m", messages=(), response="Hm.", usage=SPENT)
        thought: Future[Proposal | Note] = Future()
        thought.set_result(Note(text="tile it", conversation=said))
        return thought


def run(
    task: Task, config: RunConfig, strategy: Scripted, **workers: Nudger
) -> tuple[str, RunState]:
    started = RunStarted(run="test", task=task, config=config, at=datetime.now(UTC))
    state = RunState.begin(started)
    engine = TrivialEngine(speed_of)
    loop = Loop(state, strategy, workers, engine, lambda event: None, lambda *_: None)
    why = loop.run([("start", lambda: Proposal(candidate=program(1.0), proposer="start"))])
    return why, state


def change(**label: int | str) -> Ask:
    return Ask(worker="nudger", parent=program(1.0).content_hash, label=label)


def test_what_is_asked_for_is_done_and_its_label_comes_back(task: Task, config: RunConfig) -> None:
    strategy = Scripted([change(node=17), change(node=4)])
    why, state = run(task, config, strategy, nudger=Nudger())
    assert why == "that was all"
    proposed = [event for event in strategy.heard if isinstance(event, StepProposed)]
    assert [event.label for event in proposed] == [{}, {"node": 17}, {"node": 4}]
    assert [state.steps[number].label for number in (1, 2)] == [{"node": 17}, {"node": 4}]
    assert state.steps[1].parent == program(1.0).content_hash


def test_a_method_that_waits_for_nothing_ends_the_run(task: Task, config: RunConfig) -> None:
    why, state = run(task, config, Scripted([change(), None], end=None), nudger=Nudger())
    assert why == "the method asks for nothing more"
    assert state.funnel["evaluated"] == 2


def test_a_thought_is_an_event_and_is_paid_for(task: Task, config: RunConfig) -> None:
    strategy = Scripted([Ask(worker="thinker", label={"plan": 1})])
    _, state = run(task, config, strategy, thinker=Thinker())
    (noted,) = (event for event in strategy.heard if isinstance(event, Noted))
    assert (noted.worker, noted.label, noted.note.text) == ("thinker", {"plan": 1}, "tile it")
    assert state.usage == SPENT
    assert state.funnel["evaluated"] == 1


def test_a_method_hears_that_a_worker_had_nothing(task: Task, config: RunConfig) -> None:
    strategy = Scripted([change(), change()])
    run(task, config, strategy, nudger=Nudger(most=1))
    (declined,) = (event for event in strategy.heard if isinstance(event, Declined))
    assert (declined.worker, declined.parent) == ("nudger", program(1.0).content_hash)


def test_a_method_that_is_replayed_asks_for_the_same(
    tmp_path: Path, task: Task, config: RunConfig
) -> None:
    """With random numbers that are the same, too."""

    def asked(state: RunState, strategy: object) -> list[Ask]:
        rng = random.Random(1)
        return [strategy.next(state, ["nudger"], rng) for _ in range(20)]  # type: ignore[attr-defined]

    with Store.open(tmp_path / "runs.sqlite", create=True) as store:
        with Run.start(store, task, config) as live:
            loop = live.evolve({"nudger": Nudger()}, TrivialEngine(speed_of), lambda *_: None)
            loop.run([("start", lambda: Proposal(candidate=program(1.0), proposer="start"))])
        again = replay(store, live.state.run)
    # Those that were asked for when the run ended, and never answered, are not in any event.
    assert again[0].best == live.state.best
    for _ in range(live.strategy.bandit.asks - again[1].bandit.asks):  # type: ignore[attr-defined]
        again[1].bandit.choose()  # type: ignore[attr-defined]
    assert asked(*again) == asked(live.state, live.strategy)


def test_an_unknown_method_is_refused_before_the_run_exists(
    tmp_path: Path, task: Task, config: RunConfig
) -> None:
    unknown = config.model_copy(update={"method": "divination"})
    with Store.open(tmp_path / "runs.sqlite", create=True) as store:
        with (
            pytest.raises(BadInput, match="no method is called 'divination'"),
            Run.start(store, task, unknown),
        ):
            pass
        assert store.runs() == []
