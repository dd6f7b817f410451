"""What a run learns from: gains that are certain, as they were measured last. Noise is no gain."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.records import (
    Beside,
    Candidate,
    Evaluation,
    Event,
    Interval,
    Proposal,
    Reason,
    Remeasured,
    RunConfig,
    RunStarted,
    StepEvaluated,
    StepProposed,
    Task,
)
from kernel_smith.records.gains import certain_gain
from kernel_smith.runs.loop import Loop
from kernel_smith.runs.state import RunState
from kernel_smith.search.attempts import lineage_attempts
from kernel_smith.search.islands.islands import Islands
from kernel_smith.testing.numbers import Nudger, program, speed_of
from kernel_smith.testing.trivial import TrivialEngine

AT = datetime(2026, 1, 2, tzinfo=UTC)
START, CHILD = program(1.0), program(1.3)
NOISE = Interval(value=1.3, low=0.9, high=1.8)
PAID = "simd-loop: made a program at least {} times as fast"


class Told:
    """A run of two proposers that is told what happened."""

    def __init__(self, task: Task, config: RunConfig) -> None:
        both = config.model_copy(update={"proposers": {"nudger": 1.0, "other": 1.0}})
        self.task = task
        self.state = RunState.begin(RunStarted(run="test", task=task, config=both, at=AT))
        self._strategy = Islands(both)
        self.step(START, 1.0, parents=())

    def _tell(self, event: Event) -> None:
        self.state.apply(event)
        self._strategy.hear(event, self.state)

    def step(
        self,
        candidate: Candidate,
        outcome: float | Reason,
        *,
        width: float = 0.01,
        **changes: object,
    ) -> None:
        number = self.state.last_step + 1
        fields = {"parents": (START.content_hash,), "proposer": "nudger"} | changes
        proposal = Proposal(candidate=candidate, summary="simd-loop: i", **fields)  # type: ignore[arg-type]
        self._tell(StepProposed(step=number, proposal=proposal, at=AT))
        made = made_up(self.task, candidate, outcome, half_width=width)
        self._tell(StepEvaluated(step=number, evaluation=made, seconds=1.0, at=AT))

    def again(
        self,
        candidate: Candidate,
        outcome: float | Reason,
        gain: Interval | None = None,
        *,
        width: float = 0.01,
    ) -> None:
        made = made_up(self.task, candidate, outcome, half_width=width)
        if gain is not None:
            made = beside(made, START, gain)
        event = Remeasured(candidate=candidate.content_hash, evaluation=made, at=AT)
        self._tell(event)

    def asked(self, times: int = 20) -> list[str | None]:
        return [self._strategy.bandit.choose() for _ in range(times)]


def beside(evaluation: Evaluation, other: Candidate, gain: Interval) -> Evaluation:
    rival = Beside(candidate_hash=other.content_hash, gain=gain)
    return evaluation.model_copy(update={"beside": rival})


@pytest.fixture
def told(task: Task, config: RunConfig) -> Told:
    return Told(task, config)


@pytest.fixture
def none(task: Task, config: RunConfig) -> Told:
    """One in which the child is just as fast as its parent."""
    run = Told(task, config)
    run.step(CHILD, 1.0)
    return run


def test_a_certain_gain_is_told_by_its_lower_end(told: Told) -> None:
    told.step(CHILD, 1.3)
    assert told.state.lessons.lines() == (PAID.format("1.27"),)  # 1.3 * 0.99 / 1.01


def test_an_attempt_is_told_as_it_was_measured_last(told: Told) -> None:
    told.step(CHILD, 1.3)
    name = START.content_hash
    (before,) = lineage_attempts(told.state, name, 3)
    told.again(START, 1.2)
    (after,) = lineage_attempts(told.state, name, 3)
    (first,), (second,) = before.gains.values(), after.gains.values()
    assert (first, second) == pytest.approx((1.3, 1.3 / 1.2))


def test_noise_teaches_as_much_as_no_gain(told: Told, none: Told) -> None:
    told.step(CHILD, 1.3, width=0.35)
    assert told.state.lessons.lines() == none.state.lessons.lines() == ()
    assert told.asked() == none.asked()


def test_noise_of_the_parent_is_no_gain_of_the_child(told: Told, none: Told) -> None:
    """Its lower end is far below that of a child that is no faster."""
    for run in (told, none):
        run.again(START, 1.0, width=0.4)
    told.step(CHILD, 1.3)
    assert told.state.lessons.lines() == ()
    assert told.asked() == none.asked()


def test_a_gain_that_does_not_show_again_is_taken_back(told: Told, none: Told) -> None:
    told.step(CHILD, 1.3)
    told.again(CHILD, 1.3, NOISE)
    assert told.state.lessons.lines() == ()
    assert told.asked() == none.asked()


def test_side_by_side_outlives_a_later_measuring_alone(told: Told) -> None:
    told.step(CHILD, 1.3)
    told.again(CHILD, 1.3, Interval(value=1.2, low=1.15, high=1.25))
    told.again(CHILD, 2.0)
    assert told.state.lessons.lines() == (PAID.format("1.15"),)


def test_a_parent_that_is_measured_again_changes_what_its_children_gained(told: Told) -> None:
    told.step(CHILD, 1.3)
    told.again(START, 1.3)
    assert told.state.lessons.lines() == ()


def test_who_fails_in_the_end_has_gained_nothing(told: Told) -> None:
    told.step(CHILD, 1.3)
    told.again(CHILD, 1.3, Interval(value=1.2, low=1.15, high=1.25))
    told.again(CHILD, Reason.WRONG_VALUES)
    assert told.state.lessons.lines() == ()


def test_a_parent_that_fails_in_the_end_leaves_nothing_to_compare_with(told: Told) -> None:
    """Not the speedup over the reference, which is the parent's as much as the child's."""
    told.step(program(5.0), 5.0)
    told.again(program(5.0), 5.0, Interval(value=5.0, low=4.9, high=5.1))
    assert told.state.lessons.lines() == (PAID.format("4.90"),)
    told.again(START, Reason.WRONG_VALUES)
    assert told.state.lessons.lines() == ()


def test_a_first_program_is_compared_with_the_reference(task: Task) -> None:
    assert certain_gain(made_up(task, START, 2.0), None) == pytest.approx(1.98)
    assert certain_gain(made_up(task, START, 1.3, half_width=0.35), None) == 1


@pytest.mark.parametrize(
    ("reason", "gain"), [(Reason.WRONG_VALUES, 0.0), (Reason.CRASHED, 0.0), (Reason.TOO_NOISY, 1.0)]
)
def test_a_failure_is_worth_nothing_and_a_noisy_machine_is_no_failure(
    task: Task, reason: Reason, gain: float
) -> None:
    assert certain_gain(made_up(task, CHILD, reason), made_up(task, START, 1.0)) == gain


def test_proposers_learn_what_was_measured_last(task: Task, config: RunConfig) -> None:
    """Not what made a program the best for a moment."""
    learnt: dict[str, Evaluation] = {}

    class Noting(Nudger):
        def learn(self, proposal: Proposal, evaluation: Evaluation) -> None:
            learnt[proposal.candidate.content_hash] = evaluation

    shown: dict[str, Evaluation] = {}

    def note(event: Event) -> None:
        if isinstance(event, Remeasured) and event.evaluation.beside is not None:
            shown[event.candidate] = event.evaluation

    state = RunState.begin(RunStarted(run="test", task=task, config=config, at=AT))
    engine = TrivialEngine(speed_of)
    loop = Loop(
        state, Islands(config), {"nudger": Noting()}, engine, note, lambda event, state: None
    )
    loop.run([("start", lambda: Proposal(candidate=START, proposer="start"))])
    assert len(learnt) > len(shown) > 0
    assert {each: learnt[each] for each in shown} == shown
