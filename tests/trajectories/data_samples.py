"""Programs, steps and stores that data sets are made from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.records import (
    Budget,
    Candidate,
    Conversation,
    Elite,
    Evaluation,
    Interval,
    Message,
    Proposal,
    Reason,
    Remeasured,
    RunConfig,
    RunStarted,
    StepEvaluated,
    StepGain,
    StepProposed,
    Task,
    TrainingStep,
)
from kernel_smith.store import Store

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CONFIG = RunConfig(backend="cpp", proposers={"model": 1.0}, budget=Budget(evaluations=100))


def task(name: str, operation: str = "relu", family: str = "elementwise") -> Task:
    source = (
        "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
        f"        return torch.{operation}(x)\n\n\ndef get_inputs():\n    return [torch.randn(8)]\n"
    )
    return Task(name=name, family=family, source=source)


def program(*lines: str) -> Candidate:
    """A candidate whose `forward` has these lines."""
    body = "".join(f"        {line}\n" for line in lines)
    source = (
        "import torch\n\n\nclass ModelNew(torch.nn.Module):\n"
        f"    def forward(self, x):\n{body}        return x\n"
    )
    return Candidate(source=source)


def measured(task: Task, candidate: Candidate, outcome: float | Reason) -> Evaluation:
    """As if a judge had said so."""
    return made_up(task, candidate, outcome).model_copy(update={"made_up": False})


def elite(task: Task, candidate: Candidate, outcome: float | Reason = 1.5) -> Elite:
    return Elite(candidate=candidate, evaluation=measured(task, candidate, outcome))


def step(parent: Candidate | None, child: Candidate, **changes: Any) -> TrainingStep:
    about = changes.pop("task", task("row_relu"))
    fields: dict[str, Any] = {
        "store": "runs.sqlite",
        "run": "run-1",
        "step": 3,
        "task": about,
        "proposer": "model",
        "summary": "fuse the loops",
        "parent": elite(about, parent) if parent is not None else None,
        "child": elite(about, child, 2.0),
        "gain": StepGain(overall=Interval(value=1.3, low=1.2, high=1.4), side_by_side=True),
        "depth": 1,
    }
    return TrainingStep(**(fields | changes))


def asked(*contents: str) -> Conversation:
    """A conversation: system, user, and then in turns."""
    roles = ("system", "user", *("assistant", "user") * len(contents))
    messages = (
        Message(role=role, content=content) for role, content in zip(roles, contents, strict=False)
    )
    return Conversation(model="a-model", messages=tuple(messages), response="done")


def write_run(
    store: Path, run: str, task: Task, outcomes: Sequence[float | Reason], label: str = ""
) -> None:
    """Each step adds a line to the program of the step before, and is measured twice."""
    with Store.open(store, create=True) as opened:
        opened.append(run, RunStarted(run=run, task=task, config=CONFIG, at=AT))
        lines: list[str] = []
        parent: Candidate | None = None
        for number, outcome in enumerate(outcomes):
            lines.append(f"x = torch.{label or task.name}_{number}(x)")
            candidate = program(*lines)
            proposal = Proposal(
                candidate=candidate,
                proposer="start" if parent is None else "model",
                parents=(parent.content_hash,) if parent is not None else (),
                summary=f"call {number}",
            )
            opened.append(run, StepProposed(step=number, proposal=proposal, at=AT))
            said = measured(task, candidate, outcome)
            event = StepEvaluated(step=number, evaluation=said, seconds=1.0, at=AT)
            opened.append(run, event)
            again = Remeasured(candidate=candidate.content_hash, evaluation=said, at=AT)
            opened.append(run, again)
            parent = candidate
