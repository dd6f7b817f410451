"""Challengers are measured again beside everything else, and count as bests only then."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.proposers.base import parent_of
from kernel_smith.records import (
    Budget,
    Candidate,
    ConfirmationBegun,
    Evaluation,
    Event,
    Options,
    Proposal,
    Reason,
    Remeasured,
    Request,
    RunConfig,
    RunStarted,
    StepEvaluated,
    StepProposed,
    Task,
)
from kernel_smith.runs.loop import Loop
from kernel_smith.runs.run import Run, replay
from kernel_smith.runs.state import RunState
from kernel_smith.search.islands.islands import Islands
from kernel_smith.store import History, Store
from kernel_smith.testing.numbers import Nudger, program, speed_of
from kernel_smith.testing.trivial import TrivialEngine
from kernel_smith.trajectories.lineage import RunIndex


class Lucky(TrivialEngine):
    """Each program looks faster than any before it, until it is measured again."""

    def __init__(self) -> None:
        super().__init__(self._judged)
        self._luck = 1.0
        self._again = False

    def _judged(self, candidate: Candidate) -> float:
        if self._again:
            return 1.0
        self._luck += 0.1
        return self._luck

    def submit(self, *asked: Any, **more: Any) -> Future[Evaluation]:
        self._again = more.get("beside") is not None
        return super().submit(*asked, **more)


class Late(TrivialEngine):
    """Answers to challengers when it is allowed to."""

    def __init__(self) -> None:
        super().__init__(speed_of)
        self.held: list[Callable[[], None]] = []

    def submit(self, *asked: Any, **more: Any) -> Future[Evaluation]:
        done = super().submit(*asked, **more)
        if more.get("beside") is None:
            return done
        later: Future[Evaluation] = Future()
        self.held.append(lambda: later.set_result(done.result()))
        return later


class Recorded:
    """A loop that keeps its events in a list."""

    def __init__(
        self, task: Task, config: RunConfig, engine: TrivialEngine, worker: Nudger
    ) -> None:
        started = RunStarted(run="test", task=task, config=config, at=datetime.now(UTC))
        self.events: list[Event] = [started]
        self.state = RunState.begin(started)
        self.seen: Callable[[Event], None] = lambda event: None
        self.loop = Loop(
            self.state, Islands(config), {"nudger": worker}, engine, self.events.append, self._see
        )

    def _see(self, event: Event, state: RunState) -> None:
        self.seen(event)

    def run(self) -> str:
        return self.loop.run(
            [("start", lambda: Proposal(candidate=program(1.0), proposer="start"))]
        )


def test_the_loop_goes_on_while_a_contender_is_measured_again(
    task: Task, config: RunConfig
) -> None:
    """The engine does not say what it is worth before ten others were evaluated."""

    class OneLeap(Nudger):
        """Finds something better once."""

        speeds = iter([2.0, *(1 - number / 100 for number in range(1, 50))])

        def propose(self, request: Request) -> Proposal:
            parent = parent_of(request).candidate.content_hash
            found = program(next(self.speeds))
            return Proposal(candidate=found, proposer=self.name, parents=(parent,))

    engine = Late()
    two = config.model_copy(update={"evaluations_in_flight": 2})
    run = Recorded(task, two, engine, OneLeap())
    meanwhile = 0

    def see(event: Event) -> None:
        nonlocal meanwhile
        meanwhile += isinstance(event, StepEvaluated) and bool(engine.held)
        if meanwhile == 10 and engine.held:
            engine.held.pop()()

    run.seen = see
    late = threading.Timer(60, setattr, (run.loop, "stopping", True))
    late.start()
    assert run.run() == "the budget of 40 evaluations is spent"
    late.cancel()
    assert meanwhile == 10


def test_a_run_that_finds_nothing_but_luck_is_on_a_plateau(task: Task, config: RunConfig) -> None:
    patient = config.model_copy(update={"budget": Budget(evaluations=60, plateau=6)})
    run = Recorded(task, patient, Lucky(), Nudger())
    assert run.run() == "6 evaluations without a new best"


def test_all_count_the_same_new_bests(tmp_path: Path, task: Task, config: RunConfig) -> None:
    """Two hold, one had luck, one was not measured again."""
    now = datetime.now(UTC)
    events: list[Event] = [RunStarted(run="test", task=task, config=config, at=now)]
    for step, (looks, truth) in enumerate([(1.0, None), (2.0, 1.9), (3.0, 1.5), (4.0, None)]):
        own = program(looks)
        proposal = Proposal(candidate=own, proposer="nudger")
        events.append(StepProposed(step=step, proposal=proposal, at=now))
        judged = made_up(task, own, looks)
        events.append(StepEvaluated(step=step, evaluation=judged, seconds=1.0, at=now))
        if truth is not None:
            again = made_up(task, own, truth)
            events.append(Remeasured(candidate=own.content_hash, evaluation=again, at=now))
    state = RunState.begin(events[0])  # type: ignore[arg-type]
    for event in events[1:]:
        state.apply(event)
    history = History.of(events)
    index = RunIndex.of(enumerate(events))
    bests = [program(1.0).content_hash, program(2.0).content_hash]
    assert list(state.ranking.held) == bests
    assert [facts.candidate for facts in history.steps.values() if history.was_best(facts)] == bests
    assert [name for name in index.programs if index.was_best(name)] == bests
    assert state.curve == history.curve and len(state.curve) == 2
    assert state.since_best == 2


def test_what_led_when_the_process_was_killed_is_measured_again(
    tmp_path: Path, task: Task, config: RunConfig
) -> None:
    now = datetime.now(UTC)
    few = config.model_copy(update={"budget": Budget(evaluations=2)})
    with Store.open(tmp_path / "runs.sqlite", create=True) as store:
        with Run.start(store, task, few) as run:
            for step, looks in enumerate((1.0, 9.0)):
                proposal = Proposal(candidate=program(looks), proposer="nudger")
                run.append(StepProposed(step=step, proposal=proposal, at=now))
                judged = made_up(task, program(looks), looks)
                run.append(StepEvaluated(step=step, evaluation=judged, seconds=1.0, at=now))
            name = run.state.run
        state, _ = replay(store, name)
        assert state.best is not None and state.is_challenging(state.best)
        worker = Nudger()
        with Run.resume(store, name) as again:
            again.search(TrivialEngine(lambda _: 1.0), workers={"nudger": worker})
        events = [event for _, event in store.events(name)]
    challenger = program(9.0).content_hash
    measured = [event for event in events if isinstance(event, Remeasured)]
    assert measured[0].candidate == challenger and not measured[0].confirming
    assert worker.learned == [program(1.0).content_hash, challenger], "and heard of it once"
    assert again.state.evaluated[challenger].score < 1


def test_a_worker_hears_of_a_contender_what_it_showed_again(task: Task, config: RunConfig) -> None:
    heard: dict[str, float] = {}

    class Noting(Nudger):
        def learn(self, proposal: Proposal, evaluation: Evaluation) -> None:
            assert proposal.candidate.content_hash not in heard
            assert evaluation.timing is not None
            heard[proposal.candidate.content_hash] = evaluation.timing.speedup.value

    few = config.model_copy(update={"budget": Budget(evaluations=8)})
    run = Recorded(task, few, Lucky(), Noting())
    run.run()
    challengers = {event.candidate for event in run.events if isinstance(event, Remeasured)}
    known = challengers & heard.keys()
    assert known
    assert {heard[name] for name in known} == {1.0}


def test_measuring_again_is_time_spent_evaluating(task: Task, config: RunConfig) -> None:
    run = Recorded(task, config, TrivialEngine(speed_of, seconds=0.002), Nudger())
    run.run()
    steps = sum(event.seconds for event in run.events if isinstance(event, StepEvaluated))
    again = sum(event.seconds for event in run.events if isinstance(event, Remeasured))
    assert again > 0
    assert run.state.device_seconds == steps + again


class Counting(TrivialEngine):
    """Takes its time; some of what it measures again is too noisy, or says nothing new."""

    measurings = 0

    def _evaluate(self, *asked: Any) -> Evaluation:
        self.measurings += 1
        made = super()._evaluate(*asked)
        if self.measurings % 3 == 0 and made.ok:
            return made_up(asked[0], asked[1], Reason.TOO_NOISY)
        return made


def test_all_measuring_is_time_spent_evaluating(task: Task, config: RunConfig) -> None:
    engine = Counting(speed_of, seconds=0.004)
    few = config.model_copy(update={"budget": Budget(evaluations=12)})
    run = Recorded(task, few, engine, Nudger())
    run.run()
    assert any(isinstance(event, Remeasured) and event.confirming for event in run.events)
    assert run.state.device_seconds >= engine.measurings * 0.004


def test_of_a_budget_for_evaluating_some_is_left_for_confirming(
    task: Task, config: RunConfig
) -> None:
    few = config.model_copy(update={"budget": Budget(device_seconds=0.5)})
    run = Recorded(task, few, TrivialEngine(speed_of, seconds=0.01), Nudger())
    run.run()
    begun = next(
        place for place, event in enumerate(run.events) if isinstance(event, ConfirmationBegun)
    )
    spent = sum(getattr(event, "seconds", 0.0) for event in run.events[:begun])
    assert spent >= 0.4
    assert run.state.ended == "the budget of 0.5 seconds of evaluation is spent"


def test_nobody_waits_for_an_evaluation_that_does_not_end(task: Task, config: RunConfig) -> None:
    """Neither while the search goes on nor when its budget is spent."""

    class Hanging(TrivialEngine):
        def submit(self, *asked: Any, **more: Any) -> Future[Evaluation]:
            if more.get("beside") is None and len(self.evaluated) < 3:
                return super().submit(*asked, **more)
            threading.Timer(0.05, setattr, (run.loop, "stopping", True)).start()
            return Future()

    few = config.model_copy(update={"budget": Budget(evaluations=2)})
    run = Recorded(task, few, Hanging(speed_of), Nudger())
    assert run.run() == "interrupted"


class Profiling(TrivialEngine):
    """Notes of whom a list of kernels was asked for."""

    def __init__(self) -> None:
        super().__init__(speed_of)
        self.profiled: list[str] = []

    def submit(self, task: Task, candidate: Candidate, *rest: Any, **more: Any) -> Any:
        if rest[0].profile:
            self.profiled.append(candidate.content_hash)
        return super().submit(task, candidate, *rest, **more)


@pytest.mark.parametrize("reader", ["model", "tuner"])
def test_of_each_new_best_the_kernels_are_listed_where_a_model_reads_them(
    task: Task, reader: str
) -> None:
    engine, worker = Profiling(), Nudger()
    config = RunConfig(
        backend="cpp",
        proposers={"nudger": 1.0, reader: 1e-9},
        budget=Budget(evaluations=12),
        options=Options(profile=False),
    )
    recorded = Recorded(task, config, engine, worker)
    recorded.run()
    confirmed = [
        event.candidate
        for event in recorded.events
        if isinstance(event, Remeasured) and event.confirming
    ]
    bests = list(recorded.state.ranking.held)
    assert len(bests) > 2
    expected = bests if reader == "model" else []
    assert engine.profiled[: -len(confirmed)] == expected
