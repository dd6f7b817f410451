"""Steps are read from stores with the last verdict, their lineage, and what the prompt showed."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from step_makers import (
    AT,
    TASK,
    around,
    chain,
    evaluated,
    evaluation,
    failure,
    program,
    proposed,
    remeasured,
    said,
    write_run,
)

from kernel_smith.errors import BadInput
from kernel_smith.proposers.model.sections import fenced
from kernel_smith.records import (
    Beside,
    Candidate,
    Event,
    Proposal,
    Reason,
    Remeasured,
    Stage,
    StepDropped,
    StepEvaluated,
    StepProposed,
    TrainingStep,
)
from kernel_smith.trajectories.steps import read_steps


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.sqlite"


def steps_of(path: Path, events: list[Event]) -> list[TrainingStep]:
    return list(read_steps([write_run(path, events)]))


def names(*numbers: int) -> tuple[str, ...]:
    return tuple(program(number).content_hash for number in numbers)


def test_a_lineage_of_three_becomes_a_first_step_and_two_later_ones(path: Path) -> None:
    first, second, third = steps_of(path, chain(1.0, 1.5, 3.0))
    assert first.first and first.parent is None and first.depth == 0
    assert first.gain is not None and first.gain.overall.value == pytest.approx(1.0)
    assert second.parent is not None and second.parent.candidate == program(0)
    assert second.grandparent is None and second.gain_over_grandparent is None
    assert third.depth == 2 and third.grandparent == program(0)
    assert third.gain is not None and third.gain.overall.value == pytest.approx(2.0)
    assert third.gain_over_grandparent is not None
    assert third.gain_over_grandparent.overall.value == pytest.approx(3.0)
    assert (third.task, third.run, third.step, third.store) == (TASK, "run-1", 2, str(path))


def test_the_last_measuring_counts_for_child_and_parent(path: Path) -> None:
    events = [*chain(1.0, 2.0), remeasured(0, 1.25), remeasured(1, 1.5)]
    _, step = steps_of(path, events)
    assert step.parent is not None
    assert step.parent.evaluation == remeasured(0, 1.25).evaluation
    assert step.child.evaluation == remeasured(1, 1.5).evaluation
    assert step.gain is not None and step.gain.overall.value == pytest.approx(1.2)


def against(number: int, value: float) -> Beside:
    return Beside(candidate_hash=names(number)[0], gain=around(value))


@pytest.mark.parametrize(
    ("later", "again"),
    [
        ([], False),
        ([remeasured(1, 1.5)], False),
        ([remeasured(0, 1.0)], False),
        ([remeasured(0, 1.0), remeasured(1, 1.5)], True),
        ([remeasured(1, 1.5, beside=against(0, 1.4))], True),
        ([remeasured(1, 1.5, beside=against(7, 1.4))], False),
    ],
    ids=["once", "child", "parent", "both", "side-by-side", "beside-another"],
)
def test_a_gain_is_measured_again_if_no_first_measuring_is_part_of_it(
    path: Path, later: list[Event], again: bool
) -> None:
    _, step = steps_of(path, [*chain(1.0, 2.0), *later])
    assert step.gain is not None and step.gain.measured_again is again


def test_a_first_measuring_beside_the_parent_is_not_measured_again(path: Path) -> None:
    events = [*chain(1.0), proposed(1, 0), evaluated(1, 2.0, beside=against(0, 1.4))]
    _, step = steps_of(path, events)
    assert step.gain is not None and step.gain.side_by_side and not step.gain.measured_again


def test_what_was_timed_side_by_side_outlives_a_later_measuring_alone(path: Path) -> None:
    """A best that is challenged is measured alone; that says less about the gain that made it."""
    events = [*chain(1.0, 2.0), remeasured(1, 1.9, beside=against(0, 1.4)), remeasured(1, 3.0)]
    _, step = steps_of(path, events)
    assert step.child.evaluation == remeasured(1, 3.0).evaluation
    assert step.gain is not None and step.gain.overall == around(1.4)
    assert step.gain.side_by_side and step.gain.measured_again


def test_who_failed_in_the_end_has_no_gain_whatever_was_timed_before(path: Path) -> None:
    events = [*chain(1.0, 2.0), remeasured(1, 1.9, beside=against(0, 1.4)), remeasured(1, None)]
    assert steps_of(path, events)[1].gain is None


def test_what_was_dropped_or_never_evaluated_is_no_step(path: Path) -> None:
    dropped = StepDropped(step=1, proposer="model", why="known", at=AT)
    events = [*chain(1.0), proposed(1, 0), dropped, proposed(2, 0), proposed(3, 2)]
    events.append(evaluated(3, 2.0))  # its parent was never evaluated
    events += [proposed(4, 99), evaluated(4, 2.0)]  # its parent is of no run
    assert [step.step for step in steps_of(path, events)] == [0]


@pytest.mark.parametrize(
    ("reason", "stage", "flagged"),
    [
        (Reason.WRONG_VALUES, Stage.INCORRECT, True),
        (Reason.DECOY_KERNEL, Stage.CHEATING, True),
        (Reason.CRASHED, Stage.RUNTIME_ERROR, True),
        (Reason.TOO_NOISY, Stage.UNSTABLE, False),
        (Reason.CALL_TIMEOUT, Stage.TIMEOUT, False),
    ],
)
def test_who_fails_a_later_measuring_is_flagged_with_all_descendants(
    path: Path, reason: Reason, stage: Stage, flagged: bool
) -> None:
    again = Remeasured(candidate=names(1)[0], evaluation=failure(program(1), reason, stage), at=AT)
    steps = steps_of(path, [*chain(1.0, 1.5, 2.0, 2.5), again])
    expected = names(1) if flagged else ()
    assert [step.flagged for step in steps] == [(), expected, expected, expected]


def test_what_another_run_of_the_store_found_out_counts(path: Path) -> None:
    write_run(path, chain(1.0, 1.5, 2.0))
    write_run(path, [proposed(1), evaluated(1, None)], run="run-2")
    flagged = [step.flagged for step in read_steps([path], runs=["run-1"])]
    assert flagged == [(), names(1), names(1)]


def test_what_is_wrong_for_another_task_is_not_flagged(path: Path) -> None:
    other = TASK.model_copy(update={"name": "another"})
    write_run(path, chain(1.0, 1.5))
    wrong = evaluated(1, None, task=other.name, task_hash=other.content_hash)
    write_run(path, [proposed(1), wrong], run="run-2", task=other)
    assert [step.flagged for step in read_steps([path], runs=["run-1"])] == [(), ()]


def test_a_rival_that_cheats_is_flagged(path: Path) -> None:
    caught = Beside(candidate_hash=names(0)[0], reason=Reason.DECOY_KERNEL)
    events = [*chain(1.0), proposed(1, 0), evaluated(1, 1.5, beside=caught)]
    assert [step.flagged for step in steps_of(path, events)] == [names(0), names(0)]


def test_a_flagged_example_in_the_prompt_flags_the_step(path: Path) -> None:
    events = chain(1.0, None)
    events += [proposed(2, 0, parents=names(0, 1)), evaluated(2, 2.0)]
    assert steps_of(path, events)[2].flagged == names(1)


def test_shown_programs_are_those_named_and_those_found_in_the_messages(path: Path) -> None:
    talk = said(
        f"Another:\n\n{fenced(program(1).source)}\n",
        f"- in a list:\n  {fenced(program(2).source).replace(chr(10), chr(10) + '  ')}\n",
        f"The parent:\n\n{fenced(program(0).source)}\n\nThe reference:\n\n{fenced(TASK.source)}",
    )
    events = chain(1.0, 1.5, 1.25, 2.0)
    events += [proposed(4, parents=names(0, 3), conversation=talk), evaluated(4, 3.0)]
    step = steps_of(path, events)[4]
    assert set(step.shown) == set(names(1, 2, 3))
    assert step.best_shown == pytest.approx(2.0 * 0.99)
    assert step.conversation == talk


def test_a_program_that_begins_with_an_empty_line_is_recognised(path: Path) -> None:
    other = Candidate(source="\nclass ModelNew:\n    a = 1\n   \n    b = 2\n")
    events = chain(1.0)
    events += [
        proposed(1, 0, candidate=other),
        StepEvaluated(step=1, evaluation=evaluation(other, 1.5), seconds=1.0, at=AT),
        proposed(2, 0, conversation=said(fenced(other.source))),
        evaluated(2, 2.0),
    ]
    assert steps_of(path, events)[2].shown == (other.content_hash,)


def test_a_repair_is_a_step_from_the_program_that_was_to_be_changed(path: Path) -> None:
    events = chain(1.0, None)
    events += [proposed(2, 0, details={"repairs": names(1)[0]}), evaluated(2, 2.0)]
    step = steps_of(path, events)[2]
    assert step.parent is not None and step.parent.candidate == program(0)
    assert step.repairs == names(1)[0]
    assert step.shown == names(1) and step.best_shown == 0
    assert step.flagged == ()
    assert step.depth == 1


def test_the_best_when_it_was_measured_is_marked(path: Path) -> None:
    events = chain(1.0, 0.5, 2.0, None, 1.5)
    steps = steps_of(path, [*events[:6], remeasured(2, 2.0), *events[6:]])
    assert [step.was_best for step in steps] == [True, False, True, False, False]


def test_a_contender_that_was_only_lucky_was_never_the_best(path: Path) -> None:
    lucky = [proposed(1, 0), evaluated(1, 2.0), remeasured(1, 0.9), remeasured(0, 1.0)]
    steps = steps_of(path, [*chain(1.0), *lucky])
    assert [step.was_best for step in steps] == [True, False]


def test_a_champion_that_is_beaten_later_stays_marked(path: Path) -> None:
    first = [*chain(1.0, 2.0), remeasured(1, 2.0), remeasured(0, 0.9)]
    events = [*first, *chain(1.0, 2.0, 3.0)[4:], remeasured(2, 2.5)]
    assert [step.was_best for step in steps_of(path, events)] == [True, True, True]


def test_runs_of_several_stores_come_one_after_the_other(tmp_path: Path) -> None:
    one = write_run(tmp_path / "one.sqlite", chain(1.0))
    write_run(one, chain(1.0), run="run-2")
    two = write_run(tmp_path / "two.sqlite", chain(1.0), run="other")
    assert [step.run for step in read_steps([one, two])] == ["run-1", "run-2", "other"]
    assert [step.run for step in read_steps([one, two], runs=["oth", "run-2"])] == [
        "run-2",
        "other",
    ]
    assert [step.run for step in read_steps([one, two], runs=["latest"])] == ["run-2", "other"]


def test_an_unknown_run_is_named(path: Path) -> None:
    write_run(path, chain(1.0))
    with pytest.raises(BadInput, match="no run is called 'nothing'"):
        list(read_steps([path], runs=["run-1", "nothing"]))


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_steps(path: Path) -> None:
    """All of these steps together would take 60 MB."""
    comment = "x" * 32000

    def long_program(step: int) -> Candidate:
        return Candidate(source=f"class ModelNew:\n    unroll = {step}  # {comment}\n")

    def events(run: range) -> Iterator[Event]:
        for step in run:
            own = long_program(step)
            parents = (long_program(step - 1).content_hash,) if step % 50 else ()
            proposal = Proposal(candidate=own, proposer="tuner", parents=parents)
            yield StepProposed(step=step, proposal=proposal, at=AT)
            verdict = made.model_copy(update={"candidate_hash": own.content_hash})
            yield StepEvaluated(step=step, evaluation=verdict, seconds=1.0, at=AT)

    made = evaluation(program(0), 1.5)
    for begin in range(0, 500, 100):
        write_run(path, events(range(begin, begin + 100)), run=f"run-{begin}")
    tracemalloc.start()
    try:
        count = sum(1 for _ in read_steps([path]))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 500
    assert peak < 24 << 20
