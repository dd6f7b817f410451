"""A table of options: complete, continued where it was stopped, and never half a line."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines.made_up import made_up, made_up_beside
from kernel_smith.records import (
    Candidate,
    Evaluation,
    Interval,
    Options,
    Reason,
    Stage,
    Sweep,
    Swept,
    Task,
)
from kernel_smith.runs.config import own_starts
from kernel_smith.tasks import find_task
from kernel_smith.training.choices.judging import (
    judge_options,
    open_state,
    sweep_options,
    to_confirm,
)
from kernel_smith.training.choices.questions import question_of
from kernel_smith.training.choices.recorded import recorded_states
from kernel_smith.training.choices.rows import MOST_GAIN, Judged
from kernel_smith.training.choices.table import State, Table, rows_of

TASK = find_task("rotary_embedding")
(START,) = own_starts(TASK, "cpp")
STORE = Path(__file__).parents[2] / "results" / "training" / "steps_told.sqlite"


class Scripted:
    """An engine to which unrolled loops are twice as fast, and pointers overlap."""

    def __init__(self, late: str = "no such text") -> None:
        self.asked: Counter[str] = Counter()
        self.swept: list[int] = []
        self.late = late

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

    def sweep(
        self,
        task: Task,
        parent: Candidate,
        variants: Sequence[str],
        options: Options,
        seconds: float,
        /,
        *,
        everybody: bool = False,
    ) -> Future[Sweep]:
        """Like the judge, but that it sees more in unrolled loops, and is late for narrow types."""
        assert everybody and parent == START.model_copy(update={"name": parent.name})
        self.swept.append(len(variants))
        answer: Future[Sweep] = Future()
        answer.set_result(Sweep(swept=tuple(map(self._swept, variants)), seconds=1.0))
        return answer

    def _swept(self, source: str) -> Swept:
        outcome = self._outcome(Candidate(source=source))
        if isinstance(outcome, Reason):
            return Swept(reason=outcome)
        if self.late in source:
            return Swept()
        value = 1.5 * outcome if outcome > 1 else 1.0
        gain = Interval(value=value, low=0.98 * value, high=1.02 * value)
        return Swept(gain=gain, by_workload={each.name: gain for each in TASK.workloads})

    def _outcome(self, candidate: Candidate) -> float | Reason:
        if "__restrict__" in candidate.source:
            return Reason.WRONG_VALUES
        return 2.0 if "GCC unroll" in candidate.source else 1.0


def opened(engine: Scripted, table: Table) -> State:
    state = open_state(engine, TASK, START, table)
    assert state is not None
    return state


def all_judged(path: Path) -> State:
    table, engine = Table(path), Scripted()
    state = opened(engine, table)
    judge_options(engine, TASK, state, table)
    return state


def test_every_option_is_judged_once_and_read_back(tmp_path: Path) -> None:
    state = all_judged(tmp_path / "table.jsonl")
    table = Table(tmp_path / "table.jsonl")
    assert table.states == {(TASK.name, START.content_hash): state}
    assert set(state.judged) == {each.program.content_hash for each in state.menu().options}
    by_edit = {row.edit: row for row in state.judged.values()}
    assert by_edit["unroll-loop"].reward == pytest.approx(math.log(2), abs=0.02)
    assert by_edit["unroll-loop"].is_certain
    wrong = by_edit["restrict-parameters"]
    assert (wrong.stage, wrong.reason, wrong.reward) == (
        Stage.INCORRECT,
        Reason.WRONG_VALUES,
        0.0,
    )
    assert by_edit["specialise-bound"].reward == 0


def test_what_was_stopped_goes_on_and_judges_nothing_twice(tmp_path: Path) -> None:
    table, engine, left = Table(tmp_path / "table.jsonl"), Scripted(), [3]

    def is_over() -> bool:
        left[0] -= 1
        return left[0] < 0

    judge_options(engine, TASK, opened(engine, table), table, is_over=is_over)
    assert len(table.states[TASK.name, START.content_hash].judged) == 3
    with open(table.path, "ab") as file:
        file.write(b'{"kind":"judged","parent":"half a li')
    again = Table(table.path)
    judge_options(engine, TASK, opened(engine, again), again)
    assert set(engine.asked.values()) == {1}
    assert Table(table.path).states == again.states
    assert len(engine.asked) == 1 + len(again.states[TASK.name, START.content_hash].judged)


def test_a_question_has_the_reward_of_every_letter_in_any_order(tmp_path: Path) -> None:
    state = all_judged(tmp_path / "table.jsonl")
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
    wrong = START.model_copy(update={"source": START.source + "\n# __restrict__"})
    table = Table(tmp_path / "table.jsonl")
    assert open_state(Scripted(), TASK, wrong, table) is None
    assert not table.states
    assert not table.path.exists()


def test_one_sweep_shows_all_options_and_says_that_it_was_one(tmp_path: Path) -> None:
    table, engine = Table(tmp_path / "table.jsonl"), Scripted()
    state = opened(engine, table)
    assert sweep_options(engine, TASK, state, table) == ""
    everybody = {each.program.content_hash for each in state.menu().options}
    assert engine.swept == [len(everybody)]
    assert set(state.swept) == everybody == set(state.known)
    assert Table(table.path).states == table.states
    by_edit = {row.edit: row for row in state.known.values()}
    unrolled, wrong = by_edit["unroll-loop"], by_edit["restrict-parameters"]
    assert all(row.swept for row in by_edit.values())
    assert 0.9 * math.log(3) < unrolled.reward < math.log(3 * 0.98)  # less than the sweep's end
    assert {each.workload for each in unrolled.workloads} == {w.name for w in TASK.workloads}
    assert (wrong.stage, wrong.reason, wrong.reward) == (
        Stage.INCORRECT,
        Reason.WRONG_VALUES,
        0.0,
    )
    assert len(table.path.read_text().splitlines()) == 2  # the program, and one sweep


def test_what_a_sweep_did_not_reach_is_swept_again_and_nothing_else(tmp_path: Path) -> None:
    table, slow = Table(tmp_path / "table.jsonl"), Scripted(late="GCC unroll")
    sweep_options(slow, TASK, opened(slow, table), table)
    first = rows_of(table.states.values())
    again, engine = Table(table.path), Scripted()
    sweep_options(engine, TASK, opened(engine, again), again)
    sweep_options(engine, TASK, opened(engine, again), again)
    total = len(opened(engine, again).menu().options)
    assert engine.swept == [total - first] and rows_of(again.states.values()) == total
    assert not engine.asked  # the parent is known


def test_the_judge_confirms_what_looks_best_and_its_word_counts(tmp_path: Path) -> None:
    table, engine = Table(tmp_path / "table.jsonl"), Scripted()
    state = opened(engine, table)
    sweep_options(engine, TASK, state, table)
    chosen = to_confirm(state)
    assert chosen == to_confirm(state)
    judge_options(engine, TASK, state, table, only=chosen)
    assert set(state.judged) == chosen
    gained = [row for row in state.known.values() if row.edit == "unroll-loop"]
    confirmed = [row for row in gained if not row.swept]
    assert confirmed
    assert all(row.reward == pytest.approx(math.log(2), abs=0.02) for row in confirmed)
    read = Table(table.path)
    assert read.states == table.states
    assert next(iter(read.states.values())).known == state.known


def test_threads_that_append_at_once_lose_nothing(tmp_path: Path) -> None:
    table = Table(tmp_path / "table.jsonl")
    row = opened(Scripted(), table).parent
    others = [row.model_copy(update={"program": str(number)}) for number in range(200)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(table.append, others))
    assert len(Table(table.path).states) == 201
    assert Table(table.path).states == table.states


def test_two_machines_have_two_tables(tmp_path: Path) -> None:
    path = tmp_path / "table.jsonl"
    opened(Scripted(), Table(path))
    row = json.loads(path.read_text())
    path.write_text(json.dumps(row | {"processor": "another one"}) + "\n")
    other = Candidate(source=START.source + "\n")
    with pytest.raises(BadInput, match=r"were timed on .* another one") as refused:
        open_state(Scripted(), TASK, other, Table(path))
    assert "another file" in refused.value.hint


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
