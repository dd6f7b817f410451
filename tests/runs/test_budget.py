"""When the search ends: near the device's limit, for workloads of every kind."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.records import (
    Proposal,
    Roofline,
    RunConfig,
    RunStarted,
    StepEvaluated,
    StepProposed,
    Task,
)
from kernel_smith.runs.budget import reason_to_stop
from kernel_smith.runs.state import RunState
from kernel_smith.testing.numbers import program


def roofline(bound: str, share: float, launches: float = 1.0) -> Roofline:
    return Roofline(
        workload=f"{bound} {share}",
        bytes=1,
        flops=1,
        precision="strict",
        launches=launches,
        seconds=1.0,
        bytes_per_second=1,
        flops_per_second=1,
        bound=bound,
        share=share,
        floor_seconds=0.1,
    )


MEMORY, COMPUTE = roofline("memory", 0.97), roofline("compute", 0.96)
LAUNCH, IDLE, TWO = roofline("launch", 0.6), roofline("launch", 0.3), roofline("launch", 0.6, 2.0)


@pytest.mark.parametrize(
    ("rooflines", "why"),
    [
        ((MEMORY, COMPUTE), "the best kernel is at 96% of the device's limit"),
        ((MEMORY, LAUNCH), "the best kernel is at 97% of the device's limit"),
        ((LAUNCH,), "the best kernel takes as long as launching one"),
        ((MEMORY, roofline("memory", 0.5)), None),
        ((roofline("compute", 2.28),), None),
        ((MEMORY, IDLE), None),
        ((MEMORY, TWO), None),
        ((), None),
    ],
    ids=[
        "near",
        "near-and-launch",
        "launch",
        "far",
        "beyond",
        "slow-launch",
        "two-launches",
        "unknown",
    ],
)
def test_a_run_ends_where_no_workload_has_anything_left_to_gain(
    task: Task, config: RunConfig, rooflines: tuple[Roofline, ...], why: str | None
) -> None:
    now = datetime.now(UTC)
    state = RunState.begin(RunStarted(run="r", task=task, config=config, at=now))
    proposal = Proposal(candidate=program(2.0), proposer="start")
    judged = made_up(task, program(2.0), 2.0).model_copy(update={"rooflines": rooflines})
    state.apply(StepProposed(step=0, proposal=proposal, at=now))
    state.apply(StepEvaluated(step=0, evaluation=judged, seconds=1.0, at=now))
    assert reason_to_stop(state, 1.0) == why
    assert reason_to_stop(state, 1.0, {"seed"}) == why
    assert reason_to_stop(state, 1.0, {"start"}) is None
