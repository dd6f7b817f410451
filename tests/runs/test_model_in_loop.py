"""A run whose proposals come from a model, over real HTTP; evaluations are made up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kernel_smith.errors import BadInput
from kernel_smith.records import Budget, Candidate, Message, Reason, RunConfig, Task
from kernel_smith.runs.first_programs import begin_with
from kernel_smith.runs.run import Run, fold
from kernel_smith.store import Store
from kernel_smith.testing.numbers import program, speed_of
from kernel_smith.testing.openai_server import OpenAIServer, Reply
from kernel_smith.testing.trivial import TrivialEngine

START = """class ModelNew:
    def forward(self):
        return 0
    speed = 1.0
"""


def config(server: OpenAIServer, evaluations: int) -> RunConfig:
    model = {"name": "test", "base_url": server.base_url, "retries": 0, "backoff_seconds": 0}
    return RunConfig(
        backend="cpp",
        proposers={"model": 1.0},
        budget=Budget(evaluations=evaluations),
        features=("complexity",),
        settings={"model": {"models": [model]}},
    )


def answer(speed: float) -> Reply:
    text = START.replace("speed = 1.0", f"speed = {speed}")
    return Reply(f"Here it is, faster.\n```python\n{text}```\n")


def evolve(
    tmp_path: Path, replies: list[Any], evaluations: int, task: Task, in_flight: int = 2
) -> Any:
    with OpenAIServer(replies) as server, Store.open(tmp_path / "r.sqlite", create=True) as store:
        chosen = config(server, evaluations)
        chosen = chosen.model_copy(update={"proposals_in_flight": in_flight})
        first = program(1.0).model_copy(update={"source": START})
        chosen = begin_with(chosen, task, [first], with_seed=False)
        with Run.start(store, task, chosen) as run:
            why = run.search(TrivialEngine(speed_of))
        return why, fold(store, run.state.run), list(store.events(run.state.run))


def test_a_models_programs_are_steps_with_their_conversations(tmp_path: Path, task: Task) -> None:
    replies = [answer(1.1 + step / 10) for step in range(20)]
    why, state, _ = evolve(tmp_path, replies, 5, task)
    assert why == "the budget of 5 evaluations is spent"
    assert state.best is not None and state.best.score > 1.2
    asked = [step.proposal.conversation for step in state.steps.values() if step.parent]
    assert all(conversation is not None for conversation in asked)
    assert all(isinstance(message, Message) for message in asked[0].messages)
    assert state.usage.requests >= 4 and state.usage.completion_tokens > 0


def test_nonsense_is_dropped_with_its_conversation_and_counted(tmp_path: Path, task: Task) -> None:
    why, state, events = evolve(tmp_path, [Reply("I would rather not.")] * 200, 3, task)
    assert why.startswith("nobody is left to ask: test gave nothing of use 10 times in a row (20 ")
    assert state.funnel["evaluated"] == 1
    dropped = [event for _, event in events if event.kind == "step-dropped"]
    assert all(event.conversation is not None for event in dropped)
    assert 10 <= len(dropped) <= 12, "a few may have been under way"
    assert state.usage.requests == 2 * len(dropped)
    assert state.gave_nothing("model") and not state.gave_nothing("tuner")


def test_a_model_that_repeats_a_program_is_told_and_then_asked_no_more(
    tmp_path: Path, task: Task
) -> None:
    why, state, events = evolve(tmp_path, [answer(0.9)] * 200, 20, task)
    assert why.startswith("nobody is left to ask: test gave nothing of use 10 times in a row (20 ")
    assert state.funnel["evaluated"] == 2, "the start, and the program once"
    dropped = [event for _, event in events if event.kind == "step-dropped"]
    assert 10 <= len(dropped) <= 12, "a few may have been under way"
    repeats = [event for event in dropped if "that was judged before" in event.why]
    assert repeats, "it may have been given that very program, too"
    told = repeats[-1].conversation.messages[-1].content
    assert "(step 1, 'Here it is, faster.': " in told


def test_a_model_that_hears_that_its_program_is_known_may_write_another(
    tmp_path: Path, task: Task
) -> None:
    renamed = Reply(answer(1.2).text.replace("return 0", "return 0  # at once"))
    replies = [answer(1.2), renamed, answer(1.4), answer(1.6)]
    why, state, _ = evolve(tmp_path, replies, 3, task, in_flight=1)
    assert why == "the budget of 3 evaluations is spent"
    assert state.funnel["dropped"] == 0
    again = [step.proposal.details.get("asked_again") for step in state.steps.values()]
    assert again == [None, None, True]


def test_a_model_writes_the_first_program_and_mends_it(tmp_path: Path, task: Task) -> None:
    """The first answer does not work; what is wrong with it is told, and the second does."""
    replies = [answer(-1.0), *(answer(1.0 + step / 10) for step in range(20))]

    def judge(candidate: Candidate) -> float | Reason:
        return speed_of(candidate) if speed_of(candidate) > 0 else Reason.COMPILER_REJECTED

    with OpenAIServer(replies) as server, Store.open(tmp_path / "r.sqlite", create=True) as store:
        chosen = config(server, 4).model_copy(update={"proposals_in_flight": 1})
        chosen = begin_with(chosen, task, [], with_seed=False)
        with Run.start(store, task, chosen) as run:
            run.search(TrivialEngine(judge))
        first, second = run.state.steps[0], run.state.steps[1]
    assert first.parent is None and first.proposal.conversation is not None
    asked = first.proposal.conversation.messages
    assert task.source in asked[0].content
    assert "no program for this task yet" in asked[1].content
    assert second.proposal.details["repairs"] == first.proposal.candidate.content_hash
    assert run.state.best is not None and run.state.best.score > 1


def test_without_a_model_a_program_to_start_from_is_needed(task: Task) -> None:
    chosen = RunConfig(backend="cpp", proposers={"tuner": 1.0}, budget=Budget(evaluations=1))
    with pytest.raises(BadInput, match="no starting kernel") as caught:
        begin_with(chosen, task, [], with_seed=False)
    assert "--start FILE" in caught.value.hint
