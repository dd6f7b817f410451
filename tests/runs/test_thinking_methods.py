"""Methods that think before they write: what is asked of whom, and what comes of the answers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from scripted_search import answer, search

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.records import (
    Budget,
    Candidate,
    Note,
    Noted,
    Plan,
    Proposal,
    Reason,
    RunConfig,
    RunStarted,
    StepDropped,
    StepEvaluated,
    StepProposed,
    Task,
)
from kernel_smith.runs.config import configure
from kernel_smith.runs.state import RunState
from kernel_smith.search.base import Ask, Strategy
from kernel_smith.search.islands.islands import Islands
from kernel_smith.search.plan_edit import PlanEdit
from kernel_smith.search.queue import Queue
from kernel_smith.search.scientist import Experiment, Scientist, chosen_of, experiments_in
from kernel_smith.testing.numbers import program
from kernel_smith.testing.openai_server import Reply

Script = Callable[[dict[str, Any]], Reply]


def question_in(request: dict[str, Any]) -> str:
    return str(request["messages"][-1]["content"])


class Told:
    """A method that hears of programs one by one."""

    def __init__(self, task: Task, make: Callable[[RunConfig], Strategy], **settings: Any) -> None:
        self._now = datetime.now(UTC)
        config = RunConfig(
            backend="cpp", proposers={"model": 1.0}, budget=Budget(), settings=settings
        )
        started = RunStarted(run="r", task=task, config=config, at=self._now)
        self.task = task
        self.state = RunState.begin(started)
        self.strategy = make(config)

    def hear(
        self,
        own: Candidate,
        outcome: float | Reason,
        parent: Candidate | None = None,
        **label: Any,
    ) -> None:
        number = self.state.last_step + 1
        parents = () if parent is None else (parent.content_hash,)
        proposal = Proposal(candidate=own, proposer="model", parents=parents)
        judged = made_up(self.task, own, outcome)
        for event in (
            StepProposed(step=number, label=label, proposal=proposal, at=self._now),
            StepEvaluated(step=number, evaluation=judged, seconds=0.0, at=self._now),
        ):
            self.state.apply(event)
            self.strategy.hear(event, self.state)

    def asked(self, seed: int = 0) -> Ask:
        ask = self.strategy.next(self.state, ["model"], Random(seed))
        assert ask is not None
        return ask


# ---------------------------------------------------------------- macro plan, micro edits

EDITS = {"tile-loop": "Go through a loop in tiles.", "unroll-loop": "Unroll a loop."}


def planned(ask: Ask) -> Plan:
    (plan,) = (part for part in ask.context if isinstance(part, Plan))
    return plan


def test_the_mutators_edits_are_what_a_plan_is_made_of(task: Task) -> None:
    config = configure(task, "cpp", method="plan-edit", starts=[program(1.0)])
    edits = config.settings["plan-edit"]["edits"]
    assert "parallelise-loop" in edits and "persistent-programs" not in edits


def test_a_model_is_told_one_edit_and_its_answers_build_on_one_another(
    tmp_path: Path, task: Task
) -> None:
    replies = [answer(1.0 + number / 10) for number in range(1, 5)]
    found = search(tmp_path, task, "plan-edit", replies, Budget(evaluations=5), [program(1.0)])
    plans = [question_in({"messages": messages}) for messages in found.asked]
    assert all("# The plan" in each and "Carry out this plan" in each for each in plans)
    known = found.state.config.settings["plan-edit"]["edits"]
    for step, text in zip(found.answers, plans, strict=True):
        assert f"{step.label['edit']}: {known[step.label['edit']]}" in text
    lineage = list(found.state.lineage(found.answers[-1].proposal.candidate.content_hash))
    assert len(lineage) >= 3, "what is asked while another is judged cannot build on it"


def test_an_edit_that_paid_is_planned_again(task: Task) -> None:
    told = Told(task, PlanEdit, **{"plan-edit": {"edits": EDITS}})
    told.hear(program(1.0), 1.0)
    for step in range(4):
        told.hear(program(1.5 + step), 1.5 + step, program(1.0), edit="tile-loop")
        told.hear(program(0.9 - step / 100), 0.9 - step / 100, program(1.0), edit="unroll-loop")
    assert planned(told.asked()).edit == "tile-loop"


def test_an_edit_that_did_not_pay_gives_way_to_one_that_was_not_tried(task: Task) -> None:
    told = Told(task, PlanEdit, **{"plan-edit": {"edits": EDITS}})
    told.hear(program(1.0), 1.0)
    told.hear(program(0.9), 0.9, program(1.0), edit="tile-loop")
    assert planned(told.asked()).edit == "unroll-loop"


def test_after_failures_in_a_row_the_plan_starts_from_the_best_again(task: Task) -> None:
    told = Told(task, PlanEdit, **{"plan-edit": {"edits": EDITS}})
    told.hear(program(2.0), 2.0)
    told.hear(program(1.98), 1.98, program(2.0), edit="tile-loop")
    assert told.asked().parent == program(1.98).content_hash, "hardly slower: the plan goes on"
    for step in range(3):
        told.hear(program(0.5 + step / 10), 0.5 + step / 10, program(1.98), edit="unroll-loop")
    assert told.asked().parent == program(2.0).content_hash


# ---------------------------------------------------------------- priority queue


def padded(speed: float, lines: int) -> Candidate:
    own = program(speed)
    extra = "".join(f"    extra_{line} = other_{line}\n" for line in range(lines))
    return own.model_copy(update={"source": own.source.replace("\n", f"\n{extra}", 1)})


def test_of_programs_within_epsilon_the_best_alone_waits(task: Task) -> None:
    told = Told(task, Queue)
    assert isinstance(told.strategy, Queue)
    told.hear(padded(1.0, 40), 1.0)
    told.hear(padded(1.2, 40), 1.2)
    told.hear(padded(1.1, 40), 1.1)
    assert told.strategy.members == (padded(1.2, 40).content_hash,)
    told.hear(padded(0.9, 3), 0.9)
    assert len(told.strategy.members) == 2, "another program is no wording of it"


def test_the_first_in_the_queue_is_fast_or_had_few_turns(task: Task) -> None:
    told = Told(task, Queue)
    told.hear(padded(2.0, 40), 2.0)
    told.hear(padded(1.0, 3), 1.0)
    assert told.asked().parent == padded(2.0, 40).content_hash
    for turn in range(400):
        told.hear(program(-turn), Reason.WRONG_VALUES, padded(2.0, 40))
    assert told.asked().label, "somebody is to sum up first"
    assert told.asked().parent == padded(1.0, 3).content_hash


def test_every_fifteen_evaluations_somebody_sums_up(tmp_path: Path, task: Task) -> None:
    speeds = itertools.count(1)

    def script(request: dict[str, Any]) -> Reply:
        if "Rewrite the notes" in question_in(request):
            return Reply("Tiles of 32 pay.")
        return answer(1 + next(speeds) / 50)

    found = search(tmp_path, task, "queue", script, Budget(evaluations=25), [program(1.0)])
    (noted,) = (event for event in found.events if isinstance(event, Noted))
    assert noted.note.text == "Tiles of 32 pay."
    said = [question_in({"messages": messages}) for messages in found.asked]
    at = next(place for place, text in enumerate(said) if "Rewrite the notes" in text)
    assert not any("Tiles of 32 pay." in text for text in said[:at])
    assert all("Tiles of 32 pay." in text for text in said[at + 1 :])
    assert said[at].count("over its parent") >= 10, "what each attempt gained"


@pytest.mark.parametrize("make", [Queue, Islands])
def test_notes_are_asked_for_once_whatever_is_judged_meanwhile(
    task: Task, make: Callable[[RunConfig], Strategy]
) -> None:
    """With several answers under way, they were asked for again after every evaluation."""
    told = Told(task, make)
    for number in range(20):
        told.hear(program(1 + number / 50), 1 + number / 50)
    asks = []
    for number in range(20, 26):
        asks.append(told.asked(number))
        told.hear(program(1 + number / 50), 1 + number / 50)
    assert [ask.label.get("role") for ask in asks] == ["summariser"] + [None] * 5


def test_notes_that_nobody_wrote_are_asked_for_later(task: Task) -> None:
    told = Told(task, Queue)
    for number in range(20):
        told.hear(program(1 + number / 50), 1 + number / 50)
    ask = told.asked()
    dropped = StepDropped(
        step=21, proposer="model", label=ask.label, parent=ask.parent, why="", at=datetime.now(UTC)
    )
    told.state.apply(dropped)
    told.strategy.hear(dropped, told.state)
    assert told.asked().label == {}


# ---------------------------------------------------------------- selector, designer, writer

DESIGN = """Avenues: tiles, vectors, fewer passes.

PLAN: safe and small | gain 8 to 9 | innovation 5
PLAN: a gamble | gain -50 to 90% | innovation 30
PLAN: never seen before | gain 0 to 20 | innovation 95
PLAN: nothing much | gain 1 to 2 | innovation 1
"""


def test_of_the_plans_three_are_chosen() -> None:
    found = experiments_in(DESIGN)
    assert found[1] == Experiment("a gamble", -50.0, 90.0, 30.0) and len(found) == 4
    assert [each.text for each in chosen_of(found)] == [
        "never seen before",
        "a gamble",
        "safe and small",
    ]
    assert chosen_of(found[:1]) == found[:1] and chosen_of([]) == []


def test_a_scientist_selects_designs_and_has_three_plans_written(
    tmp_path: Path, task: Task
) -> None:
    speeds = itertools.count(1)
    slow, fast = program(1.0), program(2.0)

    def script(request: dict[str, Any]) -> Reply:
        said = question_in(request)
        if "You choose what the next experiments start from" in said:
            ids = f"base: {slow.content_hash[:8]}\nreference: {fast.content_hash[:8]}"
            return Reply(f"{ids}\nbecause it is simple")
        if "You design experiments" in said:
            return Reply(DESIGN)
        return answer(0.5 + next(speeds) / 100)

    found = search(tmp_path, task, "scientist", script, Budget(evaluations=8), [slow, fast])
    said = [question_in({"messages": messages}) for messages in found.asked]
    roles = [
        "choose" if "You choose" in t else "design" if "You design" in t else "write" for t in said
    ]
    assert roles[:8] == ["choose", "design", "write", "write", "write", "choose", "design", "write"]
    assert f"- {slow.content_hash[:8]}: 0.99x (default 0.99)" in said[0], "scores by workload"
    # The first of the starts is enough to begin with; the second time all of them are there.
    assert "speed = 2.0" in said[6], "the reference is shown"
    for text, plan in zip(said[2:5], ("never seen", "a gamble", "safe and small"), strict=True):
        assert plan in text
    parents = {step.parent for step in found.answers[:3]}
    assert parents == {slow.content_hash}, "the base that was selected"


def test_a_scientist_waits_for_one_stage_before_the_next(task: Task) -> None:
    """Others change the best meanwhile; with nobody else, nobody is asked."""
    told = Told(task, Scientist)
    told.hear(program(1.0), 1.0)
    assert told.asked().label == {"role": "selector"}
    assert told.strategy.next(told.state, ["model"], Random(0)) is None
    note = Note(text="no base", conversation=None)
    noted = Noted(worker="model", label={"role": "selector"}, note=note, at=datetime.now(UTC))
    told.state.apply(noted)
    told.strategy.hear(noted, told.state)
    assert told.asked().label == {"role": "designer"}
    assert told.strategy.next(told.state, ["model"], Random(0)) is None


def test_what_a_scientist_cannot_read_is_done_without(tmp_path: Path, task: Task) -> None:
    speeds = itertools.count(1)

    def script(request: dict[str, Any]) -> Reply:
        thinking = "Answer in words" in question_in(request)
        return Reply("I am not sure.") if thinking else answer(1 + next(speeds) / 100)

    found = search(tmp_path, task, "scientist", script, Budget(evaluations=4), [program(1.0)])
    assert len(found.answers) == 3


# ---------------------------------------------------------------- plan, code and debug


def test_each_role_is_told_what_it_needs(tmp_path: Path, task: Task) -> None:
    speeds = itertools.count(1)

    def script(request: dict[str, Any]) -> Reply:
        said = question_in(request)
        if "You plan, and somebody else writes" in said:
            return Reply("Unroll line 3 by 4.")
        return answer(1.5 + next(speeds) if "did not pass" in said else -1.0 * next(speeds))

    found = search(tmp_path, task, "roles", script, Budget(evaluations=6), [program(1.0)])
    by_role: dict[str, list[str]] = {}
    for text in (question_in({"messages": messages}) for messages in found.asked):
        role = "plan" if "You plan" in text else "debug" if "did not pass" in text else "code"
        by_role.setdefault(role, []).append(text)
    assert by_role.keys() == {"plan", "code", "debug"}
    assert all("Do not write the program" in text for text in by_role["plan"])
    for text in by_role["code"]:
        assert "Unroll line 3 by 4." in text and "Carry out this plan" in text
    for text in by_role["debug"]:
        assert "speed = -" in text and "Unroll line 3" not in text
    coded = [step for step in found.answers if step.label["role"] == "coder"]
    mended = [step for step in found.answers if step.label["role"] == "debugger"]
    assert {step.label["broken"] for step in mended} <= {
        step.proposal.candidate.content_hash for step in coded
    }
    assert found.state.best is not None and found.state.best.score > 1.5


def test_what_cannot_be_mended_is_given_up(tmp_path: Path, task: Task) -> None:
    speeds = itertools.count(1)

    def script(request: dict[str, Any]) -> Reply:
        planning = "You plan" in question_in(request)
        return Reply("A plan.") if planning else answer(-next(speeds) / 10)

    found = search(tmp_path, task, "roles", script, Budget(evaluations=20), [program(1.0)])
    depths = [int(step.label.get("depth", 0)) for step in found.answers]
    assert max(depths) == 3 and depths.count(0) >= 4, "then something else is planned"


def test_answers_in_words_are_rounds_too(tmp_path: Path, task: Task) -> None:
    def script(request: dict[str, Any]) -> Reply:
        planning = "You plan" in question_in(request)
        return Reply("A plan.") if planning else answer(1.5)

    found = search(tmp_path, task, "roles", script, Budget(rounds=2), [program(1.0)])
    assert len(found.asked) == 2 and found.state.rounds == 2


@pytest.mark.parametrize("method", ["scientist", "roles"])
def test_methods_of_thoughts_want_a_model(task: Task, method: str) -> None:
    with pytest.raises(BadInput, match="asks a model"):
        configure(task, "cpp", method=method, starts=[program(1.0)])
