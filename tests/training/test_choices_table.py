"""A table of judged options: complete, continued where it was stopped, and never half a line."""

from __future__ import annotations

import math
import re
from collections import Counter
from concurrent.futures import Future
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines.made_up import made_up, made_up_beside
from kernel_smith.records import Candidate, Evaluation, Interval, Options, Reason, Stage, Task
from kernel_smith.runs.config import own_starts
from kernel_smith.tasks import find_task
from kernel_smith.training.choices.judging import judge_options
from kernel_smith.training.choices.questions import question_of
from kernel_smith.training.choices.recorded import recorded_states
from kernel_smith.training.choices.rows import MOST_GAIN, Judged
from kernel_smith.training.choices.table import Table

TASK = find_task("rotary_embedding")
(START,) = own_starts(TASK, "cpp")
STORE = Path(__file__).parents[2] / "results" / "training" / "steps_told.sqlite"


class Scripted:
    """An engine to which unrolled loops are twice as fast, and quiet arithmetic is wrong."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def submit(
        self,
        task: Task,
        candidate: Candidate,
        options: Options | None = None,
        /,
        *,
        beside: Candidate | None = None,
    ) -> Future[Evaluation]:
        self.asked[candidate.content_hash] += 1
        answer: Future[Evaluation] = Future()
        evaluation = made_up(task, candidate, self._outcome(candidate))
        if beside is not None:
            parent = made_up(task, beside, self._outcome(beside))
            evaluation = made_up_beside(evaluation, parent)
        answer.set_result(evaluation)
        return answer

    def _outcome(self, candidate: Candidate) -> float | Reason:
        if "no-trapping-math" in candidate.source:
            return Reason.WRONG_VALUES
        return 2.0 if "GCC unroll" in candidate.source else 1.0


def test_every_option_is_judged_once_and_read_back(tmp_path: Path) -> None:
    table = Table(tmp_path / "table.jsonl")
    state = judge_options(Scripted(), TASK, START, table)
    assert state is not None
    assert set(state.judged) == {each.program.content_hash for each in state.menu().options}
    assert Table(table.path).states == table.states
    by_edit = {row.edit: row for row in state.judged.values()}
    assert by_edit["unroll-loop"].reward == pytest.approx(math.log(2), abs=0.02)
    assert by_edit["unroll-loop"].is_certain
    wrong = by_edit["quiet-arithmetic"]
    assert (wrong.stage, wrong.reason, wrong.reward) == (
        Stage.INCORRECT,
        Reason.WRONG_VALUES,
        0.0,
    )
    assert by_edit["restrict-parameters"].reward == 0


def test_what_was_stopped_goes_on_and_judges_nothing_twice(tmp_path: Path) -> None:
    table, engine, left = Table(tmp_path / "table.jsonl"), Scripted(), [3]

    def is_over() -> bool:
        left[0] -= 1
        return left[0] < 0

    judge_options(engine, TASK, START, table, is_over=is_over)
    assert len(table.states[TASK.name, START.content_hash].judged) == 3
    with open(table.path, "ab") as file:
        file.write(b'{"kind":"judged","parent":"half a li')
    again = Table(table.path)
    judge_options(engine, TASK, START, again)
    assert set(engine.asked.values()) == {1}
    assert Table(table.path).states == again.states
    assert len(engine.asked) == 1 + len(again.states[TASK.name, START.content_hash].judged)


def test_a_question_has_the_reward_of_every_letter_in_any_order(tmp_path: Path) -> None:
    state = judge_options(Scripted(), TASK, START, Table(tmp_path / "table.jsonl"))
    assert state is not None
    one, other = question_of(state, seed=1), question_of(state, seed=2)
    assert one.prompt.startswith(START.source.strip())
    assert one.prompt.endswith("\nAnswer:")
    assert "Verdict: ok: correct, 1.00x the speed of eager" in one.prompt
    assert one.prompt != other.prompt
    for question in (one, other):
        options = dict(re.findall(r"^([A-Za-z]): (.+)$", question.prompt, re.MULTILINE))
        assert set(options) == set(question.rewards)
        gained = {options[label] for label, reward in question.rewards.items() if reward > 0}
        assert {name.partition(":")[0] for name in gained} == {"unroll-loop"}


def test_a_parent_that_fails_is_no_state(tmp_path: Path) -> None:
    wrong = START.model_copy(update={"source": START.source + "\n# no-trapping-math"})
    table = Table(tmp_path / "table.jsonl")
    assert judge_options(Scripted(), TASK, wrong, table) is None
    assert not table.states
    assert not table.path.exists()


def test_another_file_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text('{"kind":"something else"}\n')
    with pytest.raises(BadInput, match="line 1 is no row of a table of choices") as refused:
        Table(path)
    assert "choices_table.py" in refused.value.hint


@given(st.floats(0.05, 20), st.floats(1, 2), st.floats(1, 2))
def test_a_reward_is_what_is_certain(value: float, below: float, above: float) -> None:
    gain = Interval(value=value, low=value / below, high=value * above)
    row = Judged(
        parent="p", task="t", edit="e", change="e: s", program="c", stage=Stage.OK, gain=gain
    )
    assert 0 <= row.reward <= math.log(MOST_GAIN)
    assert (row.reward > 0) == (gain.low > 1)
    assert row.reward <= max(math.log(gain.low), 0.0)


def test_recorded_runs_of_others_than_the_mutator_have_no_options() -> None:
    assert recorded_states([STORE]) == []
