"""What makes each method that method, with a scripted model and made-up evaluations."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from scripted_search import NONSENSE, PROGRAM, Searched, answer, brings_a_kernel, search

from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.records import (
    Budget,
    Proposal,
    RunStarted,
    StepEvaluated,
    StepProposed,
    Task,
)
from kernel_smith.runs.config import configure
from kernel_smith.runs.state import RunState
from kernel_smith.search.islands.islands import Islands
from kernel_smith.search.methods import make_strategy
from kernel_smith.testing.numbers import program, speed_of
from kernel_smith.testing.openai_server import Reply

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


def test_refinement_changes_the_best_of_answers_that_begin_with_the_reference(
    tmp_path: Path, task: Task
) -> None:
    """Each answer is a round, and none is mended: a failed one leaves the best what it was."""
    replies = [answer(1.5), answer(-1.0), answer(3.0), NONSENSE, answer(2.0), answer(2.5)]
    brings = brings_a_kernel(task, tmp_path)
    found = search(tmp_path, brings, "refinement", replies, Budget(rounds=6))
    first, *later = found.answers
    assert first.proposal.proposer == "model" and first.parent is None
    assert "class Model: pass" in found.asked[0][0]["content"]
    by_hash = {step.proposal.candidate.content_hash: step for step in found.state.steps.values()}
    parents = [speed_of(by_hash[step.parent].proposal.candidate) for step in later]
    assert parents[:2] == [1.5, 1.5] and parents[-1] == 3.0
    assert len(found.asked) == 6 and all(len(messages) == 2 for messages in found.asked)


# ---------------------------------------------------------------- islands


def test_islands_have_their_turns_keep_programs_of_every_kind_and_visit_one_another(
    tmp_path: Path, task: Task
) -> None:
    """Every third answer is of another kind: long, and never the fastest."""
    number = itertools.count()

    def reply(request: dict[str, Any]) -> Reply:
        at = next(number)
        speed = 1 + at / 50
        if at % 3:
            return answer(speed)
        padding = "".join(f"x{line} = {at}\n" for line in range(200))
        text = PROGRAM.format(speed / 2) + padding
        return Reply(f"Change: another kind.\n```python\n{text}```\n")

    found = search(tmp_path, task, "islands", reply, Budget(evaluations=60), [program(1.0)])
    asked = [step.label["island"] for step in found.answers]
    assert {0, 1, 2} == set(asked) and max(Counter(asked).values()) < len(asked) / 2
    assert isinstance(found.strategy, Islands)
    archive = found.strategy.archive
    kinds = [set(archive.cells(island)) for island in range(3)]
    assert all(len(cells) >= 2 for cells in kinds), "the slow and long ones have a place"
    homes = {step.proposal.candidate.content_hash: step.label["island"] for step in found.answers}
    assert any(
        elite.candidate.content_hash in homes and homes[elite.candidate.content_hash] != island
        for island in range(3)
        for elite in archive.elites(island)
    ), "the best of an island has visited the next"
    later = [messages[-1]["content"] for messages in found.asked[-20:]]
    assert any("# Another program for this task (1)" in content for content in later)


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
    assert config.settings["seed"] == {"wanted": False, "left_out": []}
    assert config.settings["model"]["max_repairs"] == 0
    assert config.settings["model"]["guides"] is False


@pytest.mark.parametrize("in_flight", [1, 4])
def test_no_more_is_asked_for_than_there_are_rounds(
    tmp_path: Path, task: Task, in_flight: int
) -> None:
    replies = [answer(1 + number / 10) for number in range(20)]
    found = search(tmp_path, task, "paper", replies, Budget(rounds=7), in_flight=in_flight)
    assert len(found.asked) == found.state.rounds == 7


# ---------------------------------------------------------------- tree search


def parents_of(found: Searched) -> list[float]:
    """The speeds of the programs that were changed, in their order."""
    by_hash = {step.proposal.candidate.content_hash: step for step in found.state.steps.values()}
    steps = [step for step in found.answers if step.parent is not None]
    return [speed_of(by_hash[step.parent].proposal.candidate) for step in steps]


def test_tree_search_widens_what_was_visited_and_goes_back_to_what_was_not(
    tmp_path: Path, task: Task
) -> None:
    """One child is better than its sister, which has its turns all the same."""
    replies = [answer(3.0), answer(2.5), *(answer(2.0 - number / 100) for number in range(40))]
    budget = Budget(evaluations=30)
    found = search(tmp_path, task, "uct", replies, budget, [program(1.0)])
    changed = Counter(parents_of(found))
    assert changed[3.0] > 0 and changed[2.5] > 0 and changed[1.0] > 2
    assert changed[3.0] < sum(changed.values()) / 2
    visits = Counter[str]()
    for step in found.answers:
        visits.update([step.proposal.candidate.content_hash, *lineage(found, step)])
    children = Counter(step.parent for step in found.answers)
    for name, count in children.items():
        assert count <= math.sqrt(visits[name] + 1) + 1, "as many as the root of its visits"
    assert max(len(list(lineage(found, step))) for step in found.answers) >= 3, "it goes deep"


def lineage(found: Searched, step: Any) -> Iterator[str]:
    name = step.parent
    while name is not None:
        yield name
        name = found.state.steps_about(name)[0].parent


def test_tree_search_retrieves_what_won_on_the_nearest_tasks(tmp_path: Path, task: Task) -> None:
    near = task.model_copy(update={"name": "near", "source": "class Model:\n    x = softmax(x)\n"})
    mine = task.model_copy(update={"source": near.source + "# mine\n"})
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    search(theirs, near, "greedy", [answer(7.5)] * 4, Budget(evaluations=2), [program(1.0)])
    places = [theirs / "runs.sqlite"]
    found = search(
        tmp_path, mine, "uct", [answer(2.0)], Budget(rounds=1), [program(1.0)], winners=places
    )
    assert "For the task near, 7.50x" in found.asked[0][1]["content"]


def test_asks_of_a_tree_search_that_are_under_way_are_not_sent_after(task: Task) -> None:
    """Nobody has answered yet, so the same node is not the best choice for ever."""
    config = configure(task, "cpp", method="uct", proposers=["mutator"], starts=[program(1.0)])
    now = datetime.now(UTC)
    state = RunState.begin(RunStarted(run="r", task=task, config=config, at=now))
    strategy = make_strategy(config)
    root = program(1.0).content_hash
    for number, speed in enumerate((1.0, 2.0, 1.9)):
        parents = (root,) if number else ()
        proposal = Proposal(candidate=program(speed), proposer="mutator", parents=parents)
        judged = made_up(task, program(speed), speed)
        for event in (
            StepProposed(step=number, proposal=proposal, at=now),
            StepEvaluated(step=number, evaluation=judged, seconds=1.0, at=now),
        ):
            state.apply(event)
            strategy.hear(event, state)
    asked = [strategy.next(state, ["mutator"], random.Random(0)) for _ in range(8)]
    parents_asked = {each.parent for each in asked if each is not None}
    assert parents_asked >= {program(2.0).content_hash, program(1.9).content_hash}


# ---------------------------------------------------------------- contrast


def test_contrast_shows_a_slower_program_and_asks_for_the_difference(
    tmp_path: Path, task: Task
) -> None:
    replies = [answer(3.0 - number / 5) for number in range(10)]
    found = search(tmp_path, task, "contrast", replies, Budget(evaluations=10), [program(1.0)])
    questions = [messages[1]["content"] for messages in found.asked]
    compared = [each for each in questions if "# Slower programs for this task" in each]
    assert len(compared) >= 5
    for question in compared:
        assert "what makes the faster one fast" in question
        before, _, after = question.partition("# The program to improve")
        (slower,) = re.findall(r"speed = ([\d.]+)", before)
        faster = re.findall(r"speed = ([\d.]+)", after)[0]
        assert float(slower) < float(faster)
    assert len(set(compared)) > 1, "not always the same two"


def test_without_anything_to_compare_with_a_change_is_asked_for(tmp_path: Path, task: Task) -> None:
    found = search(tmp_path, task, "contrast", [answer(2.0)], Budget(evaluations=2), [program(1.0)])
    (question,) = (messages[1]["content"] for messages in found.asked)
    assert "Slower programs" not in question and "# The program to improve" in question


# ---------------------------------------------------------------- all of them


@pytest.mark.parametrize("method", ["islands", "greedy", "uct", "contrast", "plan-edit", "queue"])
def test_a_method_that_is_rebuilt_from_events_asks_for_the_same(
    tmp_path: Path, task: Task, method: str
) -> None:
    replies = [answer(1 + number % 7 / 10 + number / 1000) for number in range(40)]
    replies[3], replies[8] = answer(-1.0), NONSENSE
    found = search(tmp_path, task, method, replies, Budget(evaluations=25), [program(1.0)])
    built = make_strategy(found.state.config)
    again = RunState.begin(found.events[0])  # type: ignore[arg-type]
    for event in found.events[1:]:
        again.apply(event)
        built.hear(event, again)
    rng, other = random.Random(1), random.Random(1)
    for _ in range(10):
        asked = built.next(again, ["model"], rng)
        assert asked is not None
        assert asked == found.strategy.next(found.state, ["model"], other)
