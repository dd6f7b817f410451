"""Questions and answers made from steps."""

from __future__ import annotations

import pytest
from data_samples import asked, elite, program, step, task
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.errors import BadInput
from kernel_smith.proposers.model.config import Model, Settings
from kernel_smith.proposers.model.edits import apply_edits, find_edits
from kernel_smith.proposers.model.parse import Program, parse_answer
from kernel_smith.proposers.model.prompt import Prompts
from kernel_smith.records import (
    Beside,
    Candidate,
    Example,
    Interval,
    Reason,
    Request,
    TrainingStep,
)
from kernel_smith.trajectories.diffs import edits_between, render_edits
from kernel_smith.trajectories.examples import ExampleSettings, example_of

OLD = program("x = x + 1", "x = x * 2", "y = 0")
NEW = program("x = x + 1", "x = x * 3", "y = 0")
LINES = st.sampled_from(["a", "  a", "b", "}", "", "   ", "c = 1", "# d", "\t}"])
SOLID = st.sampled_from(["a", "b", "}", "c = 1"])


def example(made: TrainingStep, **settings: object) -> Example:
    found = example_of(made, ExampleSettings.model_validate(settings))
    assert found is not None
    return found


@given(st.lists(LINES), st.lists(LINES))
def test_edits_turn_the_old_text_into_the_new_one_or_say_that_they_cannot(
    old: list[str], new: list[str]
) -> None:
    edits = edits_between("\n".join(old), "\n".join(new))
    if edits is not None:
        said = find_edits(render_edits(edits))
        assert said == edits
        assert apply_edits("\n".join(old), said).rstrip() == "\n".join(new).rstrip()


@given(SOLID, st.lists(LINES), SOLID, SOLID, st.lists(LINES), SOLID)
def test_texts_without_blank_lines_around_them_can_always_be_edited(
    first: str, old: list[str], last: str, new_first: str, new: list[str], new_last: str
) -> None:
    before = "\n".join([first, *old, last])
    after = "\n".join([new_first, *new, new_last])
    edits = edits_between(before, after)
    assert edits is not None
    assert apply_edits(before, edits) == after + "\n"


@given(st.lists(LINES), st.lists(LINES))
def test_every_search_part_occurs_once_in_the_old_text(old: list[str], new: list[str]) -> None:
    for edit in edits_between("\n".join(old), "\n".join(new)) or []:
        size = len(edit.search)
        places = [i for i in range(len(old)) if tuple(old[i : i + size]) == edit.search]
        assert len(places) == 1


STATEMENTS = st.lists(st.sampled_from(["x = x + 1", "x = -x", "pass", "x = x * 2"]), max_size=12)


@given(STATEMENTS, STATEMENTS)
def test_an_answer_gives_the_child(old: list[str], new: list[str]) -> None:
    parent, child = program(*old), program(*new, "x = x / 2")
    if parent == child:
        return
    made = example(step(parent, child))
    assert made.mode == "edits"
    parsed = parse_answer(made.answer, parent.source)
    assert isinstance(parsed, Program)
    assert parsed.source == child.source
    assert parsed.summary == "fuse the loops"


def test_a_small_change_is_a_small_block() -> None:
    answer = example(step(OLD, NEW)).answer
    assert answer == (
        "Change: fuse the loops\n\n<<<<<<< SEARCH\n        x = x * 2\n=======\n"
        "        x = x * 3\n>>>>>>> REPLACE"
    )


def test_a_line_that_occurs_twice_is_named_with_its_neighbours() -> None:
    old = program("x = x * 2", "pass", "x = x * 2", "y = 0")
    new = program("x = x * 2", "pass", "x = x * 3", "y = 0")
    (edit,) = edits_between(old.source, new.source) or []
    assert edit.search == ("        pass", "        x = x * 2")


def test_a_change_that_blocks_cannot_say_is_answered_in_full_and_asked_for_so() -> None:
    child = Candidate(source=NEW.source.replace("y = 0", '"""\n>>>>>>>\n"""'))
    made = example(step(OLD, child))
    assert made.mode == "full"
    assert "SEARCH" not in made.messages[-1].content
    parsed = parse_answer(made.answer, OLD.source)
    assert isinstance(parsed, Program)
    assert parsed.source == child.source


def test_a_child_that_no_answer_gives_makes_no_example() -> None:
    child = Candidate(source=NEW.source.replace("y = 0", '"<think>"'))
    assert example_of(step(OLD, child), ExampleSettings()) is None


def test_a_program_with_fences_in_it_survives() -> None:
    child = Candidate(source=NEW.source.replace("y = 0", '"""\n```python\n```\n"""'))
    for mode in ("full", "edits"):
        parsed = parse_answer(example(step(OLD, child), answer=mode).answer, OLD.source)
        assert isinstance(parsed, Program)
        assert parsed.source == child.source


def test_a_rebuilt_question_shows_the_parent_and_nothing_of_the_child() -> None:
    made = example(step(OLD, NEW))
    system, user = made.messages
    assert "torch.relu(x)" in system.content
    assert OLD.source.rstrip() in user.content
    assert "<<<<<<< SEARCH" in user.content
    assert "ok: correct, 1.5" in user.content
    for message in made.messages:
        assert "x * 3" not in message.content


def test_a_rebuilt_question_does_not_tell_how_the_parent_fares_beside_the_child() -> None:
    made = step(OLD, NEW)
    assert made.parent is not None
    beside = Beside(candidate_hash=NEW.content_hash, gain=Interval(value=0.77, low=0.76, high=0.78))
    told = made.parent.evaluation.model_copy(update={"beside": beside})
    again = made.model_copy(update={"parent": made.parent.model_copy(update={"evaluation": told})})
    assert example(again).messages == example(made).messages


def test_a_first_step_is_asked_for_without_a_program() -> None:
    made = example(step(None, NEW))
    assert made.kind == "first"
    assert made.parent is None
    assert made.mode == "full"
    assert "There is no program for this task yet" in made.messages[-1].content


def test_the_recorded_question_is_that_before_any_retry() -> None:
    shown = f"improve\n{OLD.source}\n<<<<<<< SEARCH\nwith blocks"
    made = example(
        step(OLD, NEW, conversation=asked("rules", shown, "nonsense", "again")), prompt="recorded"
    )
    assert [message.content for message in made.messages] == ["rules", shown]
    assert made.mode == "edits"


def test_the_answer_to_a_recorded_question_has_the_form_that_it_asks_for() -> None:
    conversation = asked("rules", f"improve, in full\n{OLD.source}")
    made = example(step(OLD, NEW, conversation=conversation), prompt="recorded", answer="edits")
    assert made.mode == "full"


@pytest.mark.parametrize("parent", [OLD, None])
def test_a_recorded_question_about_another_program_is_rebuilt(parent: Candidate | None) -> None:
    about_another = asked("rules", "Your program did not pass.\nclass ModelNew: ...")
    made = example(step(parent, NEW, conversation=about_another), prompt="recorded")
    assert made.messages[0].content != "rules"


def test_without_a_conversation_recorded_means_rebuilt() -> None:
    made = step(OLD, NEW, proposer="tuner")
    assert example(made, prompt="recorded") == example(made, prompt="rebuilt")


def test_a_question_that_is_too_long_makes_no_example() -> None:
    settings = ExampleSettings(max_prompt_tokens=256)
    assert example_of(step(OLD, NEW), settings) is None
    assert example_of(step(None, NEW), settings) is None


def test_a_backend_without_a_prompt_is_an_error() -> None:
    old, new = (each.model_copy(update={"backend": "abacus"}) for each in (OLD, NEW))
    with pytest.raises(BadInput, match="abacus"):
        example_of(step(old, new), ExampleSettings())


def test_a_step_without_a_summary_has_a_change_line_all_the_same() -> None:
    assert example(step(OLD, NEW, summary="")).answer.startswith("Change: the program")


@pytest.mark.parametrize("backend", ["cpp", "triton", "cuda", "maca", "hip"])
@pytest.mark.parametrize("mode", ["edits", "full"])
def test_brief_questions_are_short_and_the_same_as_those_of_a_run_with_brief_templates(
    backend: str, mode: str
) -> None:
    old, new = (each.model_copy(update={"backend": backend}) for each in (OLD, NEW))
    made = step(old, new)
    brief = example(made, prompt="brief", answer=mode)
    whole = example(made, answer=mode)
    lengths = [sum(len(message.content) for message in each.messages) for each in (brief, whole)]
    assert lengths[0] < lengths[1] / 2
    settings = Settings(
        models=(Model(name="m", base_url="http://127.0.0.1/v1"),), mode=mode, templates="brief"
    )
    assert made.parent is not None
    request = Request(task=made.task, backend=backend, parent=made.parent)
    assert Prompts(settings).build(request).messages == brief.messages


def test_the_verdict_of_a_brief_question_is_one_line() -> None:
    failed = elite(task("row_relu"), OLD, Reason.WRONG_VALUES)
    made = step(OLD, NEW).model_copy(update={"parent": failed})
    question = example(made, prompt="brief").messages[-1].content
    (line,) = [line for line in question.splitlines() if line.startswith("The judge: ")]
    assert "wrong-values" in line
