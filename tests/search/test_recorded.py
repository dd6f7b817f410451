"""Recorded steps as a landscape: they are told as they were, and gain what they gained."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.proposers.base import NothingToPropose
from kernel_smith.records import Candidate, Elite, Plan, Reason, Request, Task, TrainingStep
from kernel_smith.testing.recorded import Records, Replayer

TASK = Task(name="numbers", source="class Model: pass")


def elite(name: str, outcome: float | Reason) -> Elite:
    candidate = Candidate(source=f"NAME = {name!r}\n")
    return Elite(candidate=candidate, evaluation=made_up(TASK, candidate, outcome, half_width=0))


def steps(*made: tuple[str, Elite | None, Elite]) -> Iterator[TrainingStep]:
    for number, (summary, parent, child) in enumerate(made):
        yield TrainingStep(
            store="s",
            run="r",
            step=number,
            task=TASK,
            proposer="mutator",
            summary=summary,
            parent=parent,
            child=child,
            depth=0,
        )


START, TWICE, THRICE = elite("start", 0.5), elite("twice", 1.0), elite("thrice", 1.5)
WRONG, THEN = elite("wrong", Reason.WRONG_VALUES), elite("then", 4.0)


@pytest.fixture
def records() -> Records:
    return Records.of(
        steps(
            ("start.py", None, START),
            ("unroll-loop: loop over i (by 2)", START, TWICE),
            ("unroll-loop: loop over i (by 4)", START, elite("four", 0.6)),
            ("hoist-loads: loop over j", START, THRICE),
            ("simd-loop: loop over i", START, WRONG),
            ("tile-loops: loops over i, j", TWICE, THEN),
            ("made of what failed", WRONG, elite("lost", 9.0)),
        )
    )


def told(records: Records, candidate: Candidate) -> dict[str, Candidate]:
    return {change.summary: child for change, child in records.changes_of(candidate)}


def test_changes_gain_what_they_gained_wherever_they_can_be_made(records: Records) -> None:
    (first,) = records.first
    assert records.judge(first) == pytest.approx(0.5)
    changes = told(records, first)
    assert sorted(changes) == [
        "hoist-loads: loop over j",
        "simd-loop: loop over i",
        "unroll-loop: loop over i (by 2)",
        "unroll-loop: loop over i (by 4)",
    ]
    assert records.judge(changes["simd-loop: loop over i"]) is Reason.WRONG_VALUES
    twice = changes["unroll-loop: loop over i (by 2)"]
    assert records.judge(twice) == pytest.approx(1.0)
    both = told(records, twice)["hoist-loads: loop over j"]
    assert records.judge(both) == pytest.approx(3.0), "though it was never recorded there"
    assert records.best_recorded == pytest.approx(4.0)


def test_a_change_needs_what_it_was_built_upon_and_a_place_of_its_own(records: Records) -> None:
    (first,) = records.first
    twice = told(records, first)["unroll-loop: loop over i (by 2)"]
    assert "tile-loops: loops over i, j" not in told(records, first)
    after = told(records, twice)
    assert "tile-loops: loops over i, j" in after
    assert not any(summary.startswith("unroll-loop") for summary in after)


def request(candidate: Candidate, *context: Plan) -> Request:
    parent = Elite(candidate=candidate, evaluation=made_up(TASK, candidate, 1.0))
    return Request(task=TASK, backend="cpp", parent=parent, context=context, seed=3)


def test_a_worker_tells_each_program_once_and_the_planned_change_first(records: Records) -> None:
    (first,) = records.first
    worker = Replayer(records)
    plan = Plan(text="hoist-loads: Load once.", edit="hoist-loads")
    planned = worker.start(request(first, plan)).result()
    assert planned.summary == "hoist-loads: loop over j"
    rest = [worker.start(request(first)).result().candidate for _ in range(3)]
    assert len({each.content_hash for each in rest} | {planned.candidate.content_hash}) == 4
    with pytest.raises(NothingToPropose):
        worker.start(request(first)).result()


def test_on_resuming_it_knows_what_was_told(records: Records) -> None:
    (first,) = records.first
    before, after = Replayer(records), Replayer(records)
    for _ in range(4):
        proposal = before.start(request(first)).result()
        after.learn(proposal, made_up(TASK, proposal.candidate, 1.0))
    with pytest.raises(NothingToPropose):
        after.start(request(first)).result()
