"""What makes each method that method, with a scripted model and made-up evaluations."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from number_programs import program, speed_of

from kernel_smith.records import Budget, Candidate, Event, Reason, Task
from kernel_smith.runs.config import configure
from kernel_smith.runs.run import Run
from kernel_smith.runs.state import RunState
from kernel_smith.store import Store
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
    replies: Sequence[Reply],
    budget: Budget | None = None,
    starts: Sequence[Candidate] | None = None,
    in_flight: int = 1,
) -> Searched:
    """Search with a model alone, which is asked so many things at a time."""
    with (
        OpenAIServer(list(replies)) as server,
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
        ).model_copy(update={"proposals_in_flight": in_flight})
        with Run.start(store, task, config) as run:
            why = run.search(TrivialEngine(judge))
        events = [event for _, event in store.events(run.state.run)]
        return Searched(why, run.state, events, [each["messages"] for each in server.requests])


def brings_a_kernel(task: Task, folder: Path) -> Task:
    path = folder / "start_cpp.py"
    path.write_text(program(1.0).source)
    return task.model_copy(update={"starts": {"cpp": str(path)}})


# ---------------------------------------------------------------- what others are compared with


def test_greedy_refinement_changes_the_best_and_nothing_else(tmp_path: Path, task: Task) -> None:
    replies = [answer(speed) for speed in (1.5, 3.0, 2.0, 2.5, 2.9, 1.2, 1.1, 1.0)]
    budget = Budget(evaluations=7)
    found = search(tmp_path, task, "greedy", replies, budget, [program(0.5)])
    speeds = {step.proposal.candidate.content_hash: step for step in found.state.steps.values()}
    parents = [speed_of(speeds[step.parent].proposal.candidate) for step in found.answers]
    # One is asked for while another is judged, so the best may be one answer old.
    assert parents[-3:] == [3.0] * 3
    assert all("speed = 3.0" in messages[1]["content"] for messages in found.asked[-2:])
    assert all(later >= earlier for earlier, later in itertools.pairwise(parents))


def test_the_best_of_n_are_answers_to_the_same_question(tmp_path: Path, task: Task) -> None:
    replies = [answer(1.5), answer(-1.0), NONSENSE, answer(3.0), answer(2.0), answer(4.0)]
    found = search(
        tmp_path, brings_a_kernel(task, tmp_path), "best-of-n", replies, Budget(rounds=5)
    )
    assert found.why == "the budget of 5 rounds is spent"
    assert len(found.asked) == 5
    assert all(messages[1:] == found.asked[0][1:] for messages in found.asked)
    assert all(step.parent is None for step in found.state.steps.values())
    assert found.state.best is not None and speed_of(found.state.best.candidate) == 3.0


def test_one_shot_is_one_answer_whatever_the_budget(tmp_path: Path, task: Task) -> None:
    found = search(
        tmp_path, brings_a_kernel(task, tmp_path), "one-shot", [answer(1.5)] * 9, Budget(seconds=60)
    )
    assert found.why == "1 was all that was to be asked for"
    assert len(found.asked) == 1
    (step,) = found.state.steps.values()
    assert step.parent is None and step.proposal.proposer == "model"


def test_one_shot_that_fails_is_not_mended(tmp_path: Path, task: Task) -> None:
    found = search(tmp_path, task, "one-shot", [answer(-1.0)] * 9)
    assert len(found.asked) == 1
    assert found.state.best is None


# ---------------------------------------------------------------- the paper's protocol


def test_in_the_papers_protocol_every_answer_is_a_round(tmp_path: Path, task: Task) -> None:
    """One is no program, one is wrong, one is known, and none of them is asked for again."""
    replies = [NONSENSE, answer(-1.0), answer(1.5), answer(1.5), *map(answer, (2.0, 2.5, 3.0, 3.5))]
    found = search(tmp_path, brings_a_kernel(task, tmp_path), "paper", replies, Budget(rounds=6))
    assert found.why == "the budget of 6 rounds is spent"
    assert len(found.asked) == found.state.rounds == 6
    assert found.state.funnel["evaluated"] == 4 and found.state.funnel["dropped"] == 2
    assert [messages[-1]["role"] for messages in found.asked] == ["user"] * 6
    assert all(len(messages) == 2 for messages in found.asked), "no answer is followed up"


def test_the_papers_protocol_begins_with_the_reference(tmp_path: Path, task: Task) -> None:
    brings = brings_a_kernel(task, tmp_path)
    found = search(tmp_path, brings, "paper", [answer(1.5), answer(2.0)], Budget(rounds=2))
    first, second = found.state.steps.values()
    assert first.proposal.proposer == second.proposal.proposer == "model"
    assert first.parent is None and second.parent is not None


def test_the_papers_protocol_is_40_rounds_over_complexity_and_score(task: Task) -> None:
    models = {"models": [{"name": "m", "base_url": "http://127.0.0.1:1/v1"}]}
    config = configure(task, "cpp", method="paper", models=models)
    assert config.budget == Budget(rounds=40)
    assert (config.features, config.elites_per_cell) == (("complexity", "score"), 1)
    assert config.settings["seed"] == {"wanted": False}
    assert config.settings["model"]["max_repairs"] == 0


@pytest.mark.parametrize("in_flight", [1, 4])
def test_no_more_is_asked_for_than_there_are_rounds(
    tmp_path: Path, task: Task, in_flight: int
) -> None:
    replies = [answer(1 + number / 10) for number in range(20)]
    found = search(tmp_path, task, "paper", replies, Budget(rounds=7), in_flight=in_flight)
    assert len(found.asked) == found.state.rounds == 7
