"""A search with a scripted model and made-up evaluations, and all that was said in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_smith.records import Budget, Candidate, Event, Reason, Task
from kernel_smith.runs.config import configure
from kernel_smith.runs.run import Run
from kernel_smith.runs.state import RunState
from kernel_smith.search.base import Strategy
from kernel_smith.store import Store
from kernel_smith.testing.numbers import program, speed_of
from kernel_smith.testing.openai_server import OpenAIServer, Reply
from kernel_smith.testing.trivial import TrivialEngine

PROGRAM = "class ModelNew:\n    def forward(self): ...\n    speed = {}\n"
NONSENSE = Reply("I would rather not.")


@dataclass(frozen=True)
class Searched:
    """A run that has ended."""

    why: str
    state: RunState
    events: list[Event]
    asked: list[list[dict[str, str]]]
    """The messages of each request."""
    strategy: Strategy

    @property
    def answers(self) -> list[Any]:
        """The steps that the model wrote, in their order."""
        steps = self.state.steps.values()
        return [step for step in steps if step.proposal.proposer == "model"]


def answer(speed: float) -> Reply:
    return Reply(f"Change: to {speed}.\n```python\n{PROGRAM.format(speed)}```\n")


def judge(candidate: Candidate) -> float | Reason:
    speed = speed_of(candidate)
    return speed if speed > 0 else Reason.WRONG_VALUES


def search(
    folder: Path,
    task: Task,
    method: str,
    replies: Sequence[Reply] | Callable[[dict[str, Any]], Reply],
    budget: Budget | None = None,
    starts: Sequence[Candidate] | None = None,
    in_flight: int = 1,
    winners: Sequence[Path] = (),
) -> Searched:
    """Search with a model alone, which is asked so many things at a time."""
    with (
        OpenAIServer(replies) as server,
        Store.open(folder / "runs.sqlite", create=True) as store,
    ):
        config = configure(
            task,
            "cpp",
            method=method,
            proposers=["model"],
            models={"models": [{"name": "m", "base_url": server.base_url, "retries": 0}]},
            rebudget=None if budget is None else lambda _: budget,
            starts=starts,
            winners=winners,
        ).model_copy(update={"proposals_in_flight": in_flight})
        with Run.start(store, task, config) as run:
            why = run.search(TrivialEngine(judge))
        events = [event for _, event in store.events(run.state.run)]
        asked = [each["messages"] for each in server.requests]
        return Searched(why, run.state, events, asked, run.strategy)


def brings_a_kernel(task: Task, folder: Path) -> Task:
    path = folder / "start_cpp.py"
    path.write_text(program(1.0).source)
    return task.model_copy(update={"starts": {"cpp": str(path)}})
