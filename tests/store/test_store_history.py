"""A run's history: how far steps came, which is best, and from what it descends."""

from __future__ import annotations

import pytest
from sample_events import (
    BEGIN,
    candidate,
    conversation,
    evaluated,
    evaluation,
    proposed,
    started,
    steps,
)

from kernel_smith.records import (
    MEANINGS,
    Budget,
    Event,
    Reason,
    Remeasured,
    RunEnded,
    RunResumed,
    StepDropped,
    StepEvaluated,
)
from kernel_smith.store import History
from kernel_smith.store.facts import GATES, curve_by_evaluation


def failed(step: int, reason: Reason) -> StepEvaluated:
    stage = MEANINGS[reason].stage
    made = evaluation(candidate(step), None, stage=stage, reason=reason)
    return StepEvaluated(step=step, evaluation=made, seconds=1.0, at=BEGIN)


def bests(history: History) -> list[int]:
    return [facts.step for facts in history.steps.values() if history.was_best(facts)]


def test_the_funnel_counts_who_passed_each_gate() -> None:
    ends = [
        failed(0, Reason.SYNTAX_ERROR),
        failed(1, Reason.COMPILER_REJECTED),
        failed(2, Reason.CALL_TIMEOUT),
        failed(3, Reason.WRONG_VALUES),
        failed(4, Reason.DECOY_KERNEL),
        evaluated(5, 0.5),
        evaluated(6, 1.005),  # its interval includes 1
        evaluated(7, 2.0),
    ]
    events: list[Event] = [started()]
    for end in ends:
        events += [proposed(end.step), end]
    events.append(proposed(8))
    funnel = History.of(events).funnel
    assert {gate: funnel[gate] for gate in GATES} == {
        "proposed": 9,
        "evaluated": 8,
        "compiled": 6,
        "correct": 4,
        "honest": 3,
        "faster": 1,
    }


def test_the_curve_shows_the_best_after_each_evaluation() -> None:
    speeds = [None, 1.2, 1.1, None, 1.5]
    events: list[Event] = [started()]
    for step, speed in enumerate(speeds):
        events += [proposed(step), evaluated(step, speed)]
    history = History.of(events)
    sure = evaluated(1, 1.2).evaluation.timing.speedup.low
    assert curve_by_evaluation(history) == [0.0, *[sure] * 4], "a contender is no best yet"
    assert bests(history) == [1]
    again = evaluation(candidate(4), 1.4)
    history.add(Remeasured(candidate=candidate(4).content_hash, evaluation=again, at=BEGIN))
    assert curve_by_evaluation(history) == [0.0, *[sure] * 3, again.timing.speedup.low]
    assert bests(history) == [1, 4]


def test_measuring_again_may_dethrone_the_best() -> None:
    history = History.of([started(), *steps(3)])
    assert history.best is not None and history.best.step == 2
    again = evaluation(candidate(2), 1.05)
    history.add(Remeasured(candidate=candidate(2).content_hash, evaluation=again, at=BEGIN))
    assert history.best.step == 1
    assert history.steps[2].speedup is not None
    assert history.steps[2].speedup.value == pytest.approx(1.05)


def test_a_lineage_starts_at_a_program_without_parents() -> None:
    history = History.of([started(), *steps(4)])
    assert [facts.step for facts in history.lineage(history.steps[3])] == [0, 1, 2, 3]
    assert [facts.step for facts in history.lineage(history.steps[0])] == [0]


def test_a_lineage_ends_where_a_parent_is_unknown_or_comes_again() -> None:
    events: list[Event] = [
        started(),
        proposed(0, candidate(1)),
        proposed(1, candidate(0)),
        proposed(2, candidate(77)),
    ]
    history = History.of(events)
    assert [facts.step for facts in history.lineage(history.steps[1])] == [0, 1]
    assert [facts.step for facts in history.lineage(history.steps[2])] == [2]


def test_models_are_paid_for_dropped_proposals_too() -> None:
    dropped = StepDropped(
        step=1, proposer="model", why="known", conversation=conversation(1), at=BEGIN
    )
    history = History.of([started(), proposed(0, conversation=conversation(0)), dropped])
    assert history.usage.requests == 2
    assert history.usage.prompt_tokens == 2000
    assert history.dropped == {"model": 1}


def test_a_resumed_run_has_not_ended() -> None:
    history = History.of([started(), RunEnded(why="budget", at=BEGIN)])
    assert history.ended == "budget"
    history.add(RunResumed(at=BEGIN))
    assert (history.ended, history.resumed) == (None, 1)


def test_the_budget_is_that_of_the_last_resume() -> None:
    resumed = RunResumed(budget=Budget(evaluations=7), at=BEGIN)
    history = History.of([started(), RunEnded(why="budget", at=BEGIN), resumed])
    assert history.config.budget == Budget(evaluations=7)
    history.add(RunResumed(at=BEGIN))
    assert history.config.budget == Budget(evaluations=7), "nobody named another"


def test_the_funnel_follows_the_last_measuring() -> None:
    history = History.of([started(), *steps(3)])
    assert history.funnel["faster"] == 2
    again = evaluation(candidate(2), None, reason=Reason.DECOY_KERNEL, stage="cheating")
    history.add(Remeasured(candidate=candidate(2).content_hash, evaluation=again, at=BEGIN))
    assert (history.funnel["honest"], history.funnel["faster"]) == (2, 1)


def test_a_run_whose_only_best_turns_out_to_be_wrong_has_a_curve_that_says_so() -> None:
    history = History.of([started(), proposed(0), evaluated(0, 1.5)])
    wrong = evaluation(candidate(0), None)
    history.add(Remeasured(candidate=candidate(0).content_hash, evaluation=wrong, at=BEGIN))
    assert curve_by_evaluation(history) == [0.0]
