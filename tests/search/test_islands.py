"""Islands: who is changed, and which island has its turn."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.records import (
    Budget,
    Proposal,
    RunConfig,
    RunStarted,
    StepEvaluated,
    StepProposed,
    Task,
)
from kernel_smith.runs.state import RunState
from kernel_smith.search.islands.islands import Islands
from kernel_smith.testing.numbers import program

TASK = Task(name="numbers", source="class Model: pass")
CONFIG = RunConfig(backend="cpp", proposers={"mutator": 1.0}, budget=Budget(), islands=3)


def share_of_the_best(islands: Islands, asks: int = 600) -> float:
    """Of so many asks, with thirty programs that are about as fast."""
    now = datetime.now(UTC)
    state = RunState.begin(RunStarted(run="r", task=TASK, config=CONFIG, at=now))
    for step in range(30):
        own = program(1 + step / 100)
        padded = own.model_copy(update={"source": own.source + "x = 1\n" * step**2})
        proposal = Proposal(candidate=padded, proposer="start")
        judged = made_up(TASK, padded, 1 + step / 100)
        for event in (
            StepProposed(step=step, proposal=proposal, at=now),
            StepEvaluated(step=step, evaluation=judged, seconds=0.0, at=now),
        ):
            state.apply(event)
            islands.hear(event, state)
    rng = Random(0)
    asked = [islands.next(state, ["mutator"], rng) for _ in range(asks)]
    assert state.best is not None
    best = state.best.candidate.content_hash
    return sum(ask is not None and ask.parent == best for ask in asked) / asks


def test_four_in_ten_proposals_start_from_the_best() -> None:
    assert 0.38 < share_of_the_best(Islands(CONFIG)) < 0.55


def test_the_papers_islands_draw_every_parent_from_the_island() -> None:
    assert share_of_the_best(Islands.of_the_paper(CONFIG)) < 0.2
