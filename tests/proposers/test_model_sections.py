"""The sections of a prompt: attempts, plans, questions, winners of other tasks, what to beat."""

from __future__ import annotations

from typing import Any

import pytest

from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.proposers.model import Model, Settings
from kernel_smith.proposers.model.prompt import Prompts, tokens_of
from kernel_smith.records import (
    Attempt,
    Attempts,
    Broken,
    Candidate,
    Elite,
    Knowledge,
    Plan,
    Question,
    Reason,
    Request,
    Section,
    Specialists,
    Summary,
    Winner,
)
from kernel_smith.testing.workloads import TASK, speeds_program, with_speeds

MODELS = (Model(name="m", base_url="http://h/v1"),)


def elite(source: str = "PARENT", outcome: float | Reason = 1.5) -> Elite:
    own = Candidate(source=source)
    return Elite(candidate=own, evaluation=made_up(TASK, own, outcome))


def request(*context: Section, parent: Elite | None = None, **more: Any) -> Request:
    return Request(
        task=TASK, backend="cpp", parent=parent or elite(), context=tuple(context), **more
    )


def prompts(**changes: Any) -> Prompts:
    return Prompts(Settings(models=MODELS, **changes))


def user(asked: Request, **changes: Any) -> str:
    return prompts(**changes).build(asked).messages[1].content


def test_attempts_are_told_with_their_gain_on_each_workload() -> None:
    slower = Attempt(summary="tile by 64", speedup=1.2, gains={"wide": 1.31, "odd": 0.42})
    text = user(request(Attempts(attempts=(slower,))))
    assert "- tile by 64: 1.20x the reference's speed" in text
    assert "wide 1.31x, odd 0.42x" in text


def test_where_another_program_is_faster_is_told_in_figures_alone() -> None:
    fast = {"odd": 4.0, "wide": 0.5}
    own = speeds_program(fast)
    other = Elite(candidate=own, evaluation=with_speeds(own, fast))
    text = user(request(Specialists(programs={"odd": other})))
    assert "- odd: 4.00x" in text and "run_odd" not in text


def test_what_is_to_be_beaten_and_how_it_is_scored_are_said_once_for_all() -> None:
    system = prompts().build(request(target="torch.compile is 2.5 times as fast.")).messages[0]
    assert "torch.compile is 2.5 times as fast." in system.content
    assert "95% interval the lower end" in system.content and "You may specialise" in system.content


def test_a_plan_is_carried_out_and_a_question_answered_in_words() -> None:
    planned = user(request(Plan(text="Use tiles of 32."), Summary(text="Memory is the limit.")))
    assert "Use tiles of 32." in planned and "Memory is the limit." in planned
    assert "`Change:`" in planned
    asked = user(request(Question(text="What limits it?")))
    assert "What limits it?" in asked and "`Change:`" not in asked


def test_a_broken_program_is_shown_beside_its_parent_and_is_to_be_mended() -> None:
    text = user(request(Broken(program=elite("BROKEN", Reason.WRONG_VALUES))))
    assert text.index("PARENT") < text.index("Your program did not pass") < text.index("BROKEN")


@pytest.mark.parametrize(("speed", "rewritten"), [(0.2, True), (0.8, False), (2.0, False)])
def test_one_that_is_far_behind_may_be_written_anew(speed: float, rewritten: bool) -> None:
    text = user(request(parent=elite(outcome=speed)))
    assert ("Write it anew" in text) == rewritten
    assert ("choose the one change" in text) != rewritten


@pytest.mark.parametrize(
    ("mode", "lines", "edits"),
    [("auto", 400, True), ("auto", 50, False), ("full", 400, False), ("edits", 50, True)],
)
def test_of_long_programs_edits_are_asked_for(mode: str, lines: int, edits: bool) -> None:
    text = user(request(parent=elite("x = 1\n" * lines)), mode=mode)
    assert ("<<<<<<< SEARCH" in text) == edits


def test_winners_of_other_tasks_are_the_first_to_go_where_there_is_no_room() -> None:
    winner = Winner(task="column_sum", speedup=3.2, source="WINNER\n" * 300)
    attempt = Attempt(summary="tile by 64", speedup=1.2)
    asked = request(Knowledge(winners=(winner,)), Attempts(attempts=(attempt,)))
    whole = prompts().build(asked).messages
    assert "For the task column_sum, 3.20x" in whole[1].content
    tight = user(asked, max_prompt_tokens=tokens_of(whole) - 10)
    assert "WINNER" not in tight and "tile by 64" in tight
