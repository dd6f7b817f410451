"""The loop with made-up evaluations: budgets, duplicates, failures, the fold over its events."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.proposers.base import InThreads, parent_of
from kernel_smith.records import (
    Budget,
    Candidate,
    Evaluation,
    Event,
    Note,
    Proposal,
    Reason,
    Remeasured,
    Request,
    RunConfig,
    RunStarted,
    Stage,
    StepDropped,
    StepEvaluated,
    StepProposed,
    Task,
)
from kernel_smith.runs.loop import Loop, Opener
from kernel_smith.runs.run import Run, fold
from kernel_smith.runs.state import RunState
from kernel_smith.search.islands.islands import Islands
from kernel_smith.store import Store
from kernel_smith.testing.numbers import Nudger, program, speed_of
from kernel_smith.testing.trivial import TrivialEngine


def opener(speed: float = 1.0) -> list[Opener]:
    return [("start", lambda: Proposal(candidate=program(speed), proposer="start"))]


class Recorded:
    """A loop that keeps its events in a list."""

    def __init__(self, task: Task, config: RunConfig, engine: TrivialEngine, **proposers: object):
        from datetime import UTC, datetime

        started = RunStarted(run="test", task=task, config=config, at=datetime.now(UTC))
        self.events: list[Event] = [started]
        self.state = RunState.begin(started)
        self.strategy = Islands(config)
        self.loop = Loop(
            self.state,
            self.strategy,
            proposers or {"nudger": Nudger()},  # type: ignore[arg-type]
            engine,
            self.events.append,
            lambda event, state: None,
        )

    def of(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]

    def folded_again(self) -> RunState:
        first = self.events[0]
        assert isinstance(first, RunStarted)
        state = RunState.begin(first)
        for event in self.events[1:]:
            state.apply(event)
        return state


def test_a_run_finds_something_better_and_stops_at_its_budget(
    task: Task, config: RunConfig
) -> None:
    run = Recorded(task, config, TrivialEngine(speed_of))
    assert run.loop.run(opener()) == "the budget of 40 evaluations is spent"
    assert run.state.best is not None and run.state.best.score > 1.2
    assert 40 <= run.state.funnel["evaluated"] <= 42


def test_folding_the_events_again_gives_the_same_state(task: Task, config: RunConfig) -> None:
    run = Recorded(task, config, TrivialEngine(speed_of))
    run.loop.run(opener())
    again = run.folded_again()
    assert again.best == run.state.best
    assert again.funnel == run.state.funnel
    assert again.curve == run.state.curve
    assert again.known == run.state.known


def test_nothing_is_evaluated_twice_unless_it_is_measured_again(
    task: Task, config: RunConfig
) -> None:
    engine = TrivialEngine(speed_of)
    run = Recorded(task, config, engine)
    run.loop.run(opener())
    proposed = [event.proposal.candidate.content_hash for event in run.of(StepProposed)]  # type: ignore[union-attr]
    assert len(proposed) == len(set(proposed))


class Waiter(Nudger):
    """Hands its proposals over later."""

    def start(self, request: Request) -> Future[Proposal | Note]:
        proposal: Future[Proposal | Note] = Future()
        threading.Timer(0.001, lambda: proposal.set_result(self.propose(request))).start()
        return proposal


def test_answers_may_come_later(task: Task, config: RunConfig) -> None:
    run = Recorded(task, config, TrivialEngine(speed_of), nudger=Waiter())
    assert run.loop.run(opener()) == "the budget of 40 evaluations is spent"


def test_a_writer_works_in_threads(task: Task, config: RunConfig) -> None:
    nudger = InThreads(Nudger(), 2)
    run = Recorded(task, config, TrivialEngine(speed_of), nudger=nudger)
    assert run.loop.run(opener()) == "the budget of 40 evaluations is spent"
    nudger.close()


def test_a_proposer_that_was_closed_has_nothing_more_to_say(task: Task, config: RunConfig) -> None:
    class Closed(Nudger):
        def start(self, request: Request) -> Future[Proposal | Note]:
            proposal: Future[Proposal | Note] = Future()
            proposal.cancel()
            return proposal

    run = Recorded(task, config, TrivialEngine(speed_of), nudger=Closed())
    assert run.loop.run(opener()) == "no proposer has anything new to try"


def test_a_known_program_is_dropped(task: Task, config: RunConfig) -> None:
    class Repeater(Nudger):
        def propose(self, request: Request) -> Proposal:
            parent = parent_of(request).candidate
            same = Candidate(source=parent.source + "\n# the same\n", name="again.py")
            return Proposal(candidate=same, proposer="nudger", parents=(parent.content_hash,))

    run = Recorded(task, config, TrivialEngine(speed_of), nudger=Repeater())
    assert run.loop.run(opener()) == "no proposer has anything new to try"
    assert run.state.funnel["evaluated"] == 1
    assert {event.why for event in run.of(StepDropped)} == {"the program is known"}  # type: ignore[union-attr]


def test_a_run_ends_when_nobody_has_an_idea(task: Task, config: RunConfig) -> None:
    run = Recorded(task, config, TrivialEngine(speed_of), nudger=Nudger(most=5))
    assert run.loop.run(opener()) == "no proposer has anything new to try"
    assert run.state.funnel["evaluated"] == 6


def test_failures_are_shown_to_the_next_proposal_of_the_same_parent(
    task: Task, config: RunConfig
) -> None:
    seen: list[int] = []

    class Watching(Nudger):
        def propose(self, request: Request) -> Proposal:
            seen.append(len(request.failures))
            return super().propose(request)

    def judge(candidate: Candidate) -> float | Reason:
        return 1.0 if speed_of(candidate) == 1.0 else Reason.WRONG_VALUES

    few = config.model_copy(update={"budget": Budget(evaluations=8)})
    run = Recorded(task, few, TrivialEngine(judge), nudger=Watching())
    run.loop.run(opener())
    assert max(seen) == 3
    assert run.state.funnel["correct"] == 1


def test_failures_of_ancestors_are_shown_too(task: Task, config: RunConfig) -> None:
    from datetime import UTC, datetime

    now = datetime.now(UTC)
    state = RunState.begin(RunStarted(run="r", task=task, config=config, at=now))
    outcomes: list[tuple[float, float | None, float | Reason]] = [
        (1.0, None, 1.0),
        (0.1, 1.0, Reason.WRONG_VALUES),
        (0.2, 1.0, Reason.COMPILER_REJECTED),
        (2.0, 1.0, 2.0),
        (3.0, 2.0, 3.0),
        (0.3, 3.0, Reason.EXCEPTION),
    ]
    for step, (speed, parent, outcome) in enumerate(outcomes):
        own = program(speed)
        parents = () if parent is None else (program(parent).content_hash,)
        proposal = Proposal(candidate=own, proposer="nudger", parents=parents)
        state.apply(StepProposed(step=step, proposal=proposal, at=now))
        judged = made_up(task, own, outcome)
        state.apply(StepEvaluated(step=step, evaluation=judged, seconds=0.0, at=now))
    reasons = [failure.reason for failure in state.failures_of(program(3.0).content_hash)]
    assert reasons == [Reason.WRONG_VALUES, Reason.COMPILER_REJECTED, Reason.EXCEPTION]
    assert len(state.failures_of(program(2.0).content_hash)) == 2
    assert state.failures_of(None) == ()


def test_without_an_accepted_first_program_the_run_says_so(task: Task, config: RunConfig) -> None:
    engine = TrivialEngine(lambda candidate: Reason.COMPILER_REJECTED)
    run = Recorded(task, config, engine)
    assert run.loop.run(opener()) == "no program to start from was accepted"


@pytest.mark.parametrize(
    ("budget", "why"),
    [
        (Budget(target=1.3), "the target of 1.3x is reached"),
        (Budget(plateau=5), "5 evaluations without a new best"),
        (Budget(seconds=0.3), "the budget of 0.3 seconds is spent"),
        (Budget(device_seconds=0.1), "the budget of 0.1 seconds of evaluation is spent"),
    ],
)
def test_runs_stop_for_the_reason_they_were_given(
    task: Task, config: RunConfig, budget: Budget, why: str
) -> None:
    engine = TrivialEngine(speed_of, seconds=0.01)
    run = Recorded(task, config.model_copy(update={"budget": budget}), engine)
    assert run.loop.run(opener()) == why


def test_a_new_best_is_measured_again_beside_the_old_one(task: Task, config: RunConfig) -> None:
    class Noting(TrivialEngine):
        def submit(self, *asked: Any, **more: Any) -> Future[Evaluation]:
            if more.get("beside") is not None:
                pairs.append((speed_of(asked[1]), speed_of(more["beside"])))
            return super().submit(*asked, **more)

    pairs: list[tuple[float, float]] = []
    run = Recorded(task, config, Noting(speed_of))
    run.loop.run(opener())
    assert pairs
    assert all(challenger > champion for challenger, champion in pairs)
    assert len(run.of(Remeasured)) >= len(pairs)


@pytest.mark.parametrize(
    ("gain", "measured"), [(1.5, ["challenger"]), (1.005, ["challenger", "champion"])]
)
def test_the_old_best_is_measured_again_unless_the_new_one_is_faster_beyond_doubt(
    task: Task, config: RunConfig, gain: float, measured: list[str]
) -> None:
    names = {program(1.0).content_hash: "champion", program(gain).content_hash: "challenger"}
    engine = TrivialEngine(speed_of)
    few = config.model_copy(update={"proposers": {}})
    run = Recorded(task, few, engine)
    run.loop.run([*opener(1.0), *opener(gain)])
    again = [event.candidate for event in run.of(Remeasured) if not event.confirming]  # type: ignore[union-attr]
    assert [names[candidate] for candidate in again] == measured


def test_a_contender_that_is_caught_when_measured_again_is_not_the_best(
    task: Task, config: RunConfig
) -> None:
    class Catching(TrivialEngine):
        """Sees through everyone above 1.2, the second time."""

        def submit(self, *asked: Any, **more: Any) -> Future[Evaluation]:
            future = super().submit(*asked, **more)
            if more.get("beside") is None or speed_of(asked[1]) < 1.2:
                return future
            found = future.result().model_copy(
                update={"stage": Stage.CHEATING, "reason": Reason.DECOY_KERNEL, "timing": None}
            )
            caught: Future[Evaluation] = Future()
            caught.set_result(found)
            return caught

    run = Recorded(task, config, Catching(speed_of))
    run.loop.run(opener())
    assert any(event.evaluation.stage is Stage.CHEATING for event in run.of(Remeasured))
    assert run.state.best is not None
    assert speed_of(run.state.best.candidate) < 1.2


def test_an_interrupted_run_ends_cleanly(task: Task, config: RunConfig) -> None:
    engine = TrivialEngine(speed_of, seconds=0.05)
    run = Recorded(task, config, engine)
    threading.Timer(0.3, lambda: setattr(run.loop, "stopping", True)).start()
    assert run.loop.run(opener()) == "interrupted"


@pytest.mark.parametrize("budget", [Budget(evaluations=8), Budget(evaluations=30, plateau=3)])
def test_a_first_program_that_takes_its_time_has_its_place(
    task: Task, config: RunConfig, budget: Budget
) -> None:
    """It comes when there is nothing left to ask for but what it may lead to."""

    class Slower(Nudger):
        def propose(self, request: Request) -> Proposal:
            self.asked += 1
            made = super().propose(request)
            if self.asked == least:
                late.set()
            return made.model_copy(update={"candidate": program(0.5 + self.asked / 1000)})

        asked = 0

    def compiled() -> Proposal:
        assert late.wait(60)
        return Proposal(candidate=program(3.0), proposer="seed")

    late, least = threading.Event(), 6
    assert budget.evaluations is not None
    run = Recorded(
        task, config.model_copy(update={"budget": budget}), TrivialEngine(speed_of), nudger=Slower()
    )
    run.loop.run([*opener(), ("seed", compiled)])
    assert run.state.by_proposer["seed"] == 1
    assert run.state.best is not None and speed_of(run.state.best.candidate) == 3.0
    assert run.state.funnel["evaluated"] <= budget.evaluations


def test_a_worker_that_never_answers_does_not_keep_others_from_the_budget(
    task: Task, config: RunConfig
) -> None:
    class Sleeper(Nudger):
        name = "sleeper"

        def start(self, request: Request) -> Future[Proposal | Note]:
            return Future()

    both = {"proposers": {"nudger": 1.0, "sleeper": 1.0}, "proposals_in_flight": 4}
    few = config.model_copy(update={**both, "budget": Budget(evaluations=5)})
    run = Recorded(task, few, TrivialEngine(speed_of), nudger=Nudger(), sleeper=Sleeper())
    late = threading.Timer(60, setattr, (run.loop, "stopping", True))
    late.start()
    assert run.loop.run(opener()) == "the budget of 5 evaluations is spent"
    late.cancel()


def test_no_answer_is_asked_for_that_would_not_be_evaluated(task: Task, config: RunConfig) -> None:
    class Counting(Nudger):
        asked = 0

        def propose(self, request: Request) -> Proposal:
            self.asked += 1
            return super().propose(request)

    counting = Counting()
    many = config.model_copy(update={"proposals_in_flight": 8, "evaluations_in_flight": 4})
    run = Recorded(task, many, TrivialEngine(speed_of, seconds=0.005, lanes=4), nudger=counting)
    run.loop.run(opener())
    assert run.state.funnel["evaluated"] == 40
    assert counting.asked == 39 + run.state.funnel["dropped"]


def test_a_stored_run_goes_on_where_it_was(tmp_path: Path, task: Task, config: RunConfig) -> None:
    half = config.model_copy(update={"budget": Budget(evaluations=15)})
    with Store.open(tmp_path / "runs.sqlite", create=True) as store:
        with Run.start(store, task, half) as run:
            loop = run.evolve({"nudger": Nudger()}, TrivialEngine(speed_of), lambda *_: None)
            loop.run(opener())
            name, before = run.state.run, run.state.best
        with Run.resume(store, name) as again:
            assert again.state.best == before
            again.state.config = config
            nudger = Nudger()
            loop = again.evolve({"nudger": nudger}, TrivialEngine(speed_of), lambda *_: None)
            assert len(nudger.learned) >= 14
            loop.run([])
        folded = fold(store, name)
    assert folded.best == again.state.best
    assert 40 <= folded.funnel["evaluated"] <= 42


def test_what_was_in_flight_is_evaluated_after_a_crash(
    tmp_path: Path, task: Task, config: RunConfig
) -> None:
    class Dying(TrivialEngine):
        """Takes candidates and never answers."""

        def submit(self, *arguments: object, **options: object) -> Future:  # type: ignore[override,type-arg]
            return Future()

    with Store.open(tmp_path / "runs.sqlite", create=True) as store:
        with Run.start(store, task, config) as run:
            loop = run.evolve({"nudger": Nudger()}, Dying(speed_of), lambda *_: None)
            threading.Timer(0.5, lambda: setattr(loop, "stopping", True)).start()
            loop.run(opener())
            name = run.state.run
        with Run.resume(store, name) as again:
            assert [step.number for step in again.state.in_flight()] == [0]
            loop = again.evolve({"nudger": Nudger()}, TrivialEngine(speed_of), lambda *_: None)
            loop.run([])
            assert not again.state.in_flight()


def test_an_outside_proposal_is_a_step_like_any_other(
    tmp_path: Path, task: Task, config: RunConfig
) -> None:
    from kernel_smith.errors import BadInput

    store = Store.open(tmp_path / "runs.sqlite", create=True)
    with store, Run.start(store, task, config) as run:
        number = run.tell(program(1.5), TrivialEngine(speed_of), None, "by hand")
        assert run.state.steps[number].proposal.proposer == "outside"
        assert run.state.best is not None
        with pytest.raises(BadInput, match="part of the run already"):
            run.tell(program(1.5), TrivialEngine(speed_of), None, "again")


def test_a_new_best_from_outside_is_measured_again_beside_the_old_one(
    tmp_path: Path, task: Task, config: RunConfig
) -> None:
    engine = TrivialEngine(speed_of)
    store = Store.open(tmp_path / "runs.sqlite", create=True)
    with store, Run.start(store, task, config) as run:
        run.tell(program(1.5), engine, None, "first")
        run.tell(program(1.2), engine, None, "slower")
        kinds = [event.kind for _, event in store.events(run.state.run)]
        assert "remeasured" not in kinds
        run.tell(program(2.5), engine, None, "faster")
        kinds = [event.kind for _, event in store.events(run.state.run)]
        assert kinds[-1] == "remeasured"


class Beginner(Nudger):
    """Also writes the first program, after a few that fail."""

    begins = True

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.begun: list[Request] = []
        self._failures = failures

    def propose(self, request: Request) -> Proposal:
        if request.parent is not None:
            return super().propose(request)
        self.begun.append(request)
        number = len(self.begun)
        speed = 1.0 if number > self._failures else -float(number)
        return Proposal(candidate=program(speed), proposer=self.name, summary=f"try {number}")


def wrong_if_negative(candidate: Candidate) -> float | Reason:
    speed = speed_of(candidate)
    return speed if speed > 0 else Reason.WRONG_VALUES


def test_where_there_is_no_program_one_is_asked_for_until_it_is_accepted(
    task: Task, config: RunConfig
) -> None:
    beginner = Beginner(failures=3)
    run = Recorded(task, config, TrivialEngine(wrong_if_negative), nudger=beginner)
    assert run.loop.run([]) == "the budget of 40 evaluations is spent"
    assert run.state.best is not None and run.state.best.score > 0.9
    shown = [len(beginning.failures) for beginning in beginner.begun]
    assert shown[0] == 0 and max(shown) >= 2
    assert beginner.begun[-1].hardware


def test_a_program_that_is_there_is_tried_before_one_is_asked_for(
    task: Task, config: RunConfig
) -> None:
    beginner = Beginner(failures=0)
    run = Recorded(task, config, TrivialEngine(wrong_if_negative), nudger=beginner)
    run.loop.run(opener())
    assert beginner.begun == []


def test_first_programs_that_all_fail_end_with_the_budget(task: Task, config: RunConfig) -> None:
    run = Recorded(task, config, TrivialEngine(wrong_if_negative), nudger=Beginner(failures=99))
    assert run.loop.run([]) == "the budget of 40 evaluations is spent"
    assert run.state.best is None


def test_of_programs_that_compile_to_the_same_one_is_kept(task: Task, config: RunConfig) -> None:
    class Compiling(TrivialEngine):
        """Whatever is slower than 1.2 compiles to the same."""

        def submit(self, *asked: Any, **more: Any) -> Future[Evaluation]:
            made, speed = super().submit(*asked, **more), speed_of(asked[1])
            binary = "slow" if speed < 1.2 else str(speed)
            done: Future[Evaluation] = Future()
            done.set_result(made.result().model_copy(update={"binary": binary}))
            return done

    run = Recorded(task, config, Compiling(speed_of))
    run.loop.run(opener())
    ranked = run.state.ranking.scores
    steps = run.state.steps.values()
    twins = [step for step in steps if step.proposal.candidate.content_hash not in ranked]
    assert len(twins) == run.state.funnel["twins"] > 0
    assert all(speed_of(step.proposal.candidate) < 1.2 for step in twins)
    kept = {elite.candidate.content_hash for elite in run.strategy.archive.elites()}
    assert not kept & {step.proposal.candidate.content_hash for step in twins}
