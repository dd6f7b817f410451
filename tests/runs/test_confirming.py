"""The end of a run: its winner is measured once more, and only what that shows is said of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kernel_smith.cli.confirmation_text import confirmation_in_words, describe_confirmation
from kernel_smith.cli.exit_codes import of_run
from kernel_smith.errors import MissingPrerequisite
from kernel_smith.evaluation.engines.made_up import made_up
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
    RunConfig,
    RunEnded,
    RunStarted,
    Stage,
    StepEvaluated,
    StepProposed,
    Task,
)
from kernel_smith.runs.budget import seconds_to_search
from kernel_smith.runs.loop import Loop, Opener
from kernel_smith.runs.run import Run, fold
from kernel_smith.runs.state import RunState
from kernel_smith.search.islands.islands import Islands
from kernel_smith.store import Store
from kernel_smith.testing.numbers import Nudger, program, speed_of
from kernel_smith.testing.trivial import Judgement, TrivialEngine


def is_at_length(options: Options) -> bool:
    return options == RunConfig.model_fields["confirmation"].default


class TwoFaced(TrivialEngine):
    """Flatters while a run searches, and tells the truth at full length."""

    def __init__(self, truth: Judgement) -> None:
        super().__init__(speed_of, at_length=truth)
        self.confirmed: list[float] = []

    def submit(self, *asked: Any, **more: Any) -> Future[Evaluation]:
        if not is_at_length(asked[2]):
            return super().submit(*asked, **more)
        self.confirmed.append(speed_of(asked[1]))
        future: Future[Evaluation] = Future()
        try:
            shown = super().submit(*asked, **more).result()
            future.set_result(self.at_length(shown))
        except MissingPrerequisite as error:
            future.set_exception(error)
        return future

    def at_length(self, shown: Evaluation) -> Evaluation:
        """For others to change what is shown."""
        return shown


class Finished:
    """A run over programs with these speeds, by the search's figures, and its events."""

    def __init__(
        self,
        task: Task,
        config: RunConfig,
        engine: TwoFaced,
        speeds: Sequence[float],
        **proposers: Nudger,
    ) -> None:
        names = {} if not proposers else dict.fromkeys(proposers, 1.0)
        config = config.model_copy(update={"proposers": names})
        started = RunStarted(run="test", task=task, config=config, at=datetime.now(UTC))
        self.events: list[Event] = [started]
        self.state = RunState.begin(started)
        loop = Loop(
            self.state,
            Islands(config),
            dict(proposers),
            engine,
            self.events.append,
            lambda event, state: None,
        )
        self.why = loop.run(openers(speeds))

    @property
    def end(self) -> RunEnded:
        assert isinstance(self.events[-1], RunEnded)
        return self.events[-1]

    @property
    def speedup(self) -> float:
        """What the run says of its best."""
        assert self.state.best is not None and self.state.best.evaluation.timing is not None
        return self.state.best.evaluation.timing.speedup.value


def openers(speeds: Sequence[float]) -> list[Opener]:
    def opening(speed: float) -> Callable[[], Proposal]:
        return lambda: Proposal(candidate=program(speed), proposer="start")

    return [("start", opening(speed)) for speed in speeds]


def test_what_flattered_the_search_is_not_called_faster(task: Task, config: RunConfig) -> None:
    run = Finished(task, config, TwoFaced(lambda _: 0.94), [1.88])
    assert run.speedup == pytest.approx(0.94)
    assert not run.state.is_confirmed
    assert of_run(run.state) == 1
    words = confirmation_in_words(run.state)
    assert words.startswith("That it is faster than eager and torch.compile is not shown.")
    assert run.end.best == program(1.88).content_hash


def test_the_gain_of_a_winner_is_that_of_the_measuring_that_did_not_choose_it(
    task: Task, config: RunConfig
) -> None:
    engine = TwoFaced(lambda candidate: 0.9 * speed_of(candidate))
    run = Finished(task, config, engine, [1.2, 2.0, 1.1])
    assert engine.confirmed == [2.0], "once, and nobody else"
    assert run.speedup == pytest.approx(1.8)
    assert run.state.confirmation == run.state.best.evaluation  # type: ignore[union-attr]
    assert of_run(run.state) == 0
    assert describe_confirmation(run.state) == {
        "confirmed": True,
        "faster_than": ["eager", "compile"],
        "unconfirmed": "",
    }
    begun = [event for event in run.events if isinstance(event, ConfirmationBegun)]
    assert [event.candidate for event in begun] == [program(2.0).content_hash]


def test_faster_than_eager_alone_is_not_enough(task: Task, config: RunConfig) -> None:
    class Compiled(TwoFaced):
        def at_length(self, shown: Evaluation) -> Evaluation:
            slower = made_up(task, program(2.0), 0.8, baselines=["compile"]).timing
            assert shown.timing is not None and slower is not None
            both = (shown.timing.speedups[0], slower.speedups[0])
            timing = shown.timing.model_copy(update={"speedups": both})
            return shown.model_copy(update={"timing": timing})

    run = Finished(task, config, Compiled(speed_of), [2.0])
    assert of_run(run.state) == 1
    words = confirmation_in_words(run.state)
    assert words.startswith("That it is faster than torch.compile is not shown")
    assert describe_confirmation(run.state)["faster_than"] == ["eager"]


@pytest.mark.parametrize("second", [1.3, 0.9])
def test_where_the_first_is_contradicted_the_next_contender_is_tried(
    task: Task, config: RunConfig, second: float
) -> None:
    truth = {2.0: 0.97, 1.5: second, 1.4: 1.4}
    engine = TwoFaced(lambda candidate: truth[speed_of(candidate)])
    run = Finished(task, config, engine, [1.4, 1.5, 2.0])
    assert engine.confirmed == [2.0, 1.5], "two at most are tested: luck has as many chances"
    assert of_run(run.state) == (0 if second > 1 else 1)
    assert run.speedup == pytest.approx(max(second, 0.97))


def test_those_that_are_caught_leave_the_way_to_the_next(task: Task, config: RunConfig) -> None:
    def truth(candidate: Candidate) -> float | Reason:
        return Reason.DECOY_KERNEL if speed_of(candidate) > 1.35 else 1.1

    engine = TwoFaced(truth)
    run = Finished(task, config, engine, [1.3, 1.4, 1.5, 1.6])
    assert engine.confirmed == [1.6, 1.5, 1.4, 1.3]
    assert of_run(run.state) == 0 and run.speedup == pytest.approx(1.1)


def test_after_many_that_are_caught_the_run_gives_up(task: Task, config: RunConfig) -> None:
    engine = TwoFaced(lambda _: Reason.DECOY_KERNEL)
    run = Finished(task, config, engine, [1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7])
    assert engine.confirmed == [1.7, 1.6, 1.5, 1.4, 1.3]
    assert run.end.best == program(1.2).content_hash
    assert run.state.confirmation is None
    assert of_run(run.state) == 1
    assert confirmation_in_words(run.state).startswith("That it is faster is not shown")


def test_one_that_is_clearly_slower_than_the_next_is_compared_and_measured_once_more(
    task: Task, config: RunConfig
) -> None:
    truth = {2.0: 1.2, 1.5: 1.45}
    engine = TwoFaced(lambda candidate: truth[speed_of(candidate)])
    run = Finished(task, config, engine, [1.5, 2.0])
    assert engine.confirmed == [2.0, 1.5, 1.5], "the figure that chose it is not the one reported"
    assert run.speedup == pytest.approx(1.45)
    assert of_run(run.state) == 0


def test_what_was_too_noisy_twice_is_undecided(task: Task, config: RunConfig) -> None:
    class Noisy(TwoFaced):
        def at_length(self, shown: Evaluation) -> Evaluation:
            both = ("eager", "compile")
            wide = made_up(task, program(1.5), 1.0, half_width=0.5, baselines=both)
            unstable = {"stage": Stage.UNSTABLE, "reason": Reason.TOO_NOISY}
            return wide.model_copy(update=unstable)

    engine = Noisy(speed_of)
    run = Finished(task, config, engine, [1.5])
    assert engine.confirmed == [1.5, 1.5]
    assert of_run(run.state) == 5
    assert "is not shown" in confirmation_in_words(run.state)


def test_where_it_cannot_be_measured_the_run_says_why_and_ends(
    task: Task, config: RunConfig
) -> None:
    def fail(_: Candidate) -> float:
        raise MissingPrerequisite("torch.compile needs a compiler", hint="none")

    run = Finished(task, config, TwoFaced(fail), [1.5])
    assert run.end.unconfirmed == "torch.compile needs a compiler"
    assert of_run(run.state) == 1
    assert "torch.compile needs a compiler" in confirmation_in_words(run.state)


class Remembering(TwoFaced):
    """Answers at full length with what it measured long ago, the first few times."""

    def __init__(self, times: int) -> None:
        super().__init__(speed_of)
        self._times = times

    def at_length(self, shown: Evaluation) -> Evaluation:
        if len(self.confirmed) > self._times:
            return shown
        return shown.model_copy(update={"created_at": datetime(2020, 1, 1, tzinfo=UTC)})


def test_an_engine_that_remembers_is_asked_anew(task: Task, config: RunConfig) -> None:
    engine = Remembering(1)
    run = Finished(task, config, engine, [1.5])
    assert engine.confirmed == [1.5, 1.5]
    assert of_run(run.state) == 0
    forgetful = Finished(task, config, Remembering(9), [1.5])
    assert of_run(forgetful.state) == 1
    assert "measured before" in forgetful.end.unconfirmed


def test_a_target_that_was_reached_by_luck_does_not_end_the_search(
    task: Task, config: RunConfig
) -> None:
    budget = Budget(target=1.3, evaluations=60)
    engine = TwoFaced(lambda candidate: 0.8 * speed_of(candidate))
    config = config.model_copy(update={"budget": budget})
    run = Finished(task, config, engine, [1.2], nudger=Nudger())
    assert len(engine.confirmed) > 1
    reached = run.why == "the target of 1.3x is reached"
    assert reached == (run.speedup * 0.99 >= 1.3), run.why


def test_the_first_is_measured_also_if_the_time_is_over_and_no_other(
    task: Task, config: RunConfig
) -> None:
    engine = TwoFaced(lambda _: 0.9)
    late = config.model_copy(update={"budget": Budget(seconds=1e-6)})
    started = RunStarted(run="late", task=task, config=late, at=datetime.now(UTC))
    state = RunState.begin(started)
    loop = Loop(
        state,
        Islands(late),
        {"nudger": Nudger()},
        engine,
        lambda event: None,
        lambda event, state: None,
    )
    for number, speed in enumerate((1.5, 1.6)):
        add_step(loop, number, speed)
    assert loop.run([]) == "the budget of 1e-06 seconds is spent"
    assert engine.confirmed == [1.6]


@pytest.mark.parametrize(("limit", "search"), [(10.0, 8.0), (1200.0, 1140.0)])
def test_a_part_of_the_time_is_kept_for_confirming(limit: float, search: float) -> None:
    assert seconds_to_search(limit) == search


def add_step(loop: Loop, number: int, speed: float) -> None:
    """Have a step in the run that was evaluated earlier."""
    now = datetime.now(UTC)
    proposal = Proposal(candidate=program(speed), proposer="start")
    loop.emit(StepProposed(step=number, proposal=proposal, at=now))
    made = made_up(loop.state.task, program(speed), speed)
    loop.emit(StepEvaluated(step=number, evaluation=made, seconds=1.0, at=now))


# ---------------------------------------------------------------- runs that go on


@pytest.mark.parametrize(("truth", "measured"), [(1.8, [2.0]), (1.3, [2.0, 1.5, 1.5])])
def test_a_run_that_is_stopped_while_it_confirms_goes_on_with_that(
    tmp_path: Path, task: Task, config: RunConfig, truth: float, measured: list[float]
) -> None:
    class Hanging(TwoFaced):
        """Never answers at full length, and has the run stopped."""

        loop: Loop

        def submit(self, *asked: Any, **more: Any) -> Future[Evaluation]:
            if not is_at_length(asked[2]):
                return super().submit(*asked, **more)
            self.loop.stopping = True
            return Future()

    config = config.model_copy(update={"proposers": {}})
    hanging = Hanging(speed_of)
    with Store.open(tmp_path / "runs.sqlite", create=True) as store:
        with Run.start(store, task, config) as run:
            name = run.state.run
            hanging.loop = run.evolve({}, hanging, lambda *_: None)
            assert hanging.loop.run(openers([1.5, 2.0])) == "interrupted"
            assert run.state.ended is None and not run.state.is_confirmed
            assert of_run(run.state) == 1
        engine = TwoFaced(lambda _: truth)
        for _ in range(3):
            with Run.resume(store, name) as again:
                again.evolve({}, engine, lambda *_: None).run([])
        state = fold(store, name)
        (summary,) = store.runs()
    assert engine.confirmed == measured, "however often it is resumed"
    assert of_run(state) == 0
    assert summary.confirmed and summary.best is not None
    assert summary.best.value == pytest.approx(truth)


def test_who_overtakes_a_confirmed_winner_is_confirmed_too(
    tmp_path: Path, task: Task, config: RunConfig
) -> None:
    config = config.model_copy(update={"proposers": {}})
    truth = {2.0: 1.3, 1.6: 1.55}
    engine = TwoFaced(lambda candidate: truth[speed_of(candidate)])
    with Store.open(tmp_path / "runs.sqlite", create=True) as store:
        with Run.start(store, task, config) as run:
            name = run.state.run
            run.evolve({}, engine, lambda *_: None).run(openers([2.0]))
            assert run.state.is_confirmed
            run.tell(program(1.6), engine, None, "by hand")
            assert run.state.best is not None and speed_of(run.state.best.candidate) == 1.6
            assert not run.state.is_confirmed, "nobody has confirmed it yet"
            (told,) = store.runs()
            assert told.best_candidate == program(1.6).content_hash and not told.confirmed
        with Run.resume(store, name) as again:
            again.evolve({}, engine, lambda *_: None).run([])
        state = fold(store, name)
    assert state.best is not None and speed_of(state.best.candidate) == 1.6
    assert engine.confirmed == [2.0, 1.6, 1.6]
    assert state.is_confirmed


def test_measuring_again_in_the_search_puts_a_confirmation_in_doubt(
    task: Task, config: RunConfig
) -> None:
    run = Finished(task, config, TwoFaced(speed_of), [2.0])
    again = made_up(task, program(2.0), 1.7)
    name = program(2.0).content_hash
    run.state.apply(Remeasured(candidate=name, evaluation=again, at=datetime.now(UTC)))
    assert run.state.confirmation is None
