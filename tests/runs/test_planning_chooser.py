"""The chooser as the policy of plans: what it would choose is what a model is told to write."""

from __future__ import annotations

import itertools
import re
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.proposers.chooser import Policy
from kernel_smith.records import (
    Budget,
    Candidate,
    Declined,
    Elite,
    Event,
    Note,
    Noted,
    Plan,
    Proposal,
    Question,
    RunConfig,
    RunStarted,
    StepEvaluated,
    StepProposed,
)
from kernel_smith.runs.config import configure, own_starts
from kernel_smith.runs.run import Run
from kernel_smith.runs.state import RunState
from kernel_smith.search.plan_edit import PlanEdit
from kernel_smith.store import Store
from kernel_smith.tasks import find_task
from kernel_smith.testing.openai_server import OpenAIServer, Reply
from kernel_smith.testing.trivial import TrivialEngine

TASK = find_task("rotary_embedding")
(START,) = own_starts(TASK, "cpp")
UNROLLS = Policy(kind="weights", weights={"edit=unroll-loop": 50.0})
NOW = datetime.now(UTC)
PLANNED = re.compile(r"# The plan\n\n([\w-]+): (.*)")


def writes_something() -> Any:
    """A model that makes a program of whatever it is told, each a little faster than the last."""
    numbers = itertools.count(1)

    def answer(request: dict[str, Any]) -> Reply:
        program = f"{START.source}FASTER = {next(numbers)}\n"
        return Reply(f"Change: as planned.\n```python\n{program}```\n")

    return answer


def speed(candidate: Candidate) -> float:
    found = re.findall(r"FASTER = (\d+)", candidate.source)
    return 1.0 + 0.1 * int(found[-1]) if found else 1.0


def test_what_the_chooser_likes_is_what_a_model_is_told(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text(UNROLLS.model_dump_json())
    with (
        OpenAIServer(writes_something()) as server,
        Store.open(tmp_path / "runs.sqlite", create=True) as store,
    ):
        config = configure(
            TASK,
            "cpp",
            method="plan-edit",
            proposers=["chooser", "model"],
            policy=str(path),
            models={"models": [{"name": "m", "base_url": server.base_url, "retries": 0}]},
            rebudget=lambda _: Budget(evaluations=4),
            starts=[START],
        ).model_copy(update={"proposals_in_flight": 1})
        with Run.start(store, TASK, config) as run:
            run.search(TrivialEngine(speed))
        events = [event for _, event in store.events(run.state.run)]
    plans = [event.note.text for event in events if isinstance(event, Noted)]
    written = [step for step in run.state.steps.values() if step.proposal.proposer == "model"]
    assert len(written) == 3
    assert {step.proposal.proposer for step in run.state.steps.values()} == {"start", "model"}
    assert {step.label["edit"] for step in written} == {"unroll-loop"}
    sentence = config.settings["plan-edit"]["edits"]["unroll-loop"]
    for asked in server.requests:
        found = PLANNED.search(asked["messages"][-1]["content"])
        assert found is not None
        assert found[1] == "unroll-loop"
        planned = {f"{sentence} Here: {plan.partition(': ')[2]}" for plan in plans}
        assert found[2] in planned  # one for a program that has been left is not used
    assert len(run.state.steps) == 4


def told(*workers: str) -> tuple[PlanEdit, RunState]:
    """The method after a first program was judged."""
    settings = {"plan-edit": {"edits": {"unroll-loop": "Unroll a loop."}}}
    proposers = dict.fromkeys(workers, 1.0)
    config = RunConfig(backend="cpp", proposers=proposers, budget=Budget(), settings=settings)
    state = RunState.begin(RunStarted(run="r", task=TASK, config=config, at=NOW))
    strategy = PlanEdit(config)
    first = Proposal(candidate=START, proposer="start")
    judged = made_up(TASK, START, 1.0)
    for event in (
        StepProposed(step=0, proposal=first, at=NOW),
        StepEvaluated(step=0, evaluation=judged, seconds=0.0, at=NOW),
    ):
        heard(strategy, state, event)
    return strategy, state


def heard(strategy: PlanEdit, state: RunState, event: Event) -> None:
    state.apply(event)
    strategy.hear(event, state)


def test_one_plan_at_a_time_and_nobody_writes_before_it_is_there() -> None:
    strategy, state = told("chooser", "model")
    question = strategy.next(state, ["chooser", "model"], Random(0))
    assert question is not None and question.worker == "chooser"
    assert any(isinstance(part, Question) for part in question.context)
    assert strategy.next(state, ["chooser", "model"], Random(0)) is None
    note = Note(text="tile-loop: kernel: loop i, by 32")
    heard(strategy, state, Noted(worker="chooser", label=question.label, note=note, at=NOW))
    # Somebody who was killed here, and hears all events again, has the same plan in hand.
    again = strategy.next(state, ["model"], Random(0))
    assert again is not None and again.worker == "model"
    (plan,) = (part for part in again.context if isinstance(part, Plan))
    assert (plan.edit, plan.text) == ("tile-loop", "tile-loop: Here: kernel: loop i, by 32")
    written = Proposal(candidate=START, proposer="model", parents=(START.content_hash,))
    heard(strategy, state, StepProposed(step=1, label=again.label, proposal=written, at=NOW))
    later = strategy.next(state, ["chooser", "model"], Random(0))
    assert later is not None and later.worker == "chooser"  # a plan is carried out once


def test_where_the_chooser_has_no_opinion_or_is_gone_it_is_planned_as_without_it() -> None:
    strategy, state = told("chooser", "model")
    question = strategy.next(state, ["chooser", "model"], Random(0))
    assert question is not None
    why = "every edit was tried"
    event = Declined(worker="chooser", label=question.label, parent=None, why=why, at=NOW)
    heard(strategy, state, event)
    for free in (["chooser", "model"], ["model"]):
        ask = strategy.next(state, free, Random(0))
        assert ask is not None
        assert (ask.worker, ask.label) == ("model", {"edit": "unroll-loop"})


def test_a_chooser_without_anybody_to_tell_proposes_itself() -> None:
    strategy, state = told("chooser", "tuner")
    ask = strategy.next(state, ["chooser"], Random(0))
    assert ask is not None and ask.worker == "chooser"
    assert not any(isinstance(part, Question) for part in ask.context)
    assert isinstance(state.best, Elite)
