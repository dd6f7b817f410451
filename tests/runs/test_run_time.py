"""How long a run has taken: the time that somebody worked on it, without the pauses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.records import (
    Candidate,
    Proposal,
    RunConfig,
    RunEnded,
    RunResumed,
    RunStarted,
    StepEvaluated,
    StepProposed,
    Task,
)
from kernel_smith.runs.state import RunState


def at(second: int) -> datetime:
    return datetime(2026, 1, 2, tzinfo=UTC) + timedelta(seconds=second)


def test_pauses_before_a_resume_and_before_a_step_from_outside_do_not_count(
    task: Task, config: RunConfig
) -> None:
    state = RunState.begin(RunStarted(run="r", task=task, config=config, at=at(0)))
    state.apply(RunEnded(why="enough", at=at(10)))
    state.apply(RunResumed(at=at(1000)))
    state.apply(RunEnded(why="enough", at=at(1005)))
    assert state.seconds == 15
    candidate = Candidate(source="class ModelNew: pass", name="mine.py")
    proposal = Proposal(candidate=candidate, proposer="outside")
    state.apply(StepProposed(step=0, proposal=proposal, at=at(5000)))
    told = made_up(task, candidate, 1.5)
    state.apply(StepEvaluated(step=0, evaluation=told, seconds=2.0, at=at(5002)))
    assert state.seconds == 17
