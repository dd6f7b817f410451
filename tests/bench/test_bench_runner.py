"""Arms on problems, with scripted models and made-up evaluations: budgets, trouble, resuming."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from bench_makers import PROGRAM, Bench, answer, judge

from kernel_smith.bench.arms import Protocol, make_plans
from kernel_smith.bench.scores import boards
from kernel_smith.errors import (
    BadInput,
    InternalError,
    MissingPrerequisite,
    NotAdmitted,
    NotEnoughMemory,
    TookTooLong,
)
from kernel_smith.records import Budget, Evaluation, Event, RunConfig, StepEvaluated, Task
from kernel_smith.records.bench import BenchRow
from kernel_smith.runs.run import fold
from kernel_smith.runs.state import RunState
from kernel_smith.search import methods
from kernel_smith.search.base import Ask
from kernel_smith.search.methods import METHODS
from kernel_smith.store import Store
from kernel_smith.testing.openai_server import Reply
from kernel_smith.testing.trivial import TrivialEngine

Model = Callable[[list[Reply]], dict[str, Any]]
TROUBLE = {
    "refused": NotAdmitted("the output is constant", hint="mend it"),
    "broken": BadInput("Model.forward raised KeyError", hint="mend it"),
    "too-large": NotEnoughMemory("it takes 600 GiB", hint="less"),
    "hung": TookTooLong("did not end within 20 s", hint="more"),
}


class Troubled(TrivialEngine):
    """An engine that has trouble with one problem, with every program of it."""

    def __init__(self, task: str, error: Exception) -> None:
        super().__init__(judge)
        self._task = task
        self._error = error
        self.asked = 0

    def submit(self, task: Task, *rest: Any, **more: Any) -> Future[Evaluation]:
        if task.name != self._task:
            return super().submit(task, *rest, **more)
        self.asked += 1
        failed: Future[Evaluation] = Future()
        failed.set_exception(self._error)
        return failed


def by_problem(rows: list[BenchRow]) -> dict[str, BenchRow]:
    return {row.problem.rpartition("/")[2]: row for row in rows}


def evaluated(bench: Bench) -> dict[str, int]:
    """How many programs were evaluated in each run of the store."""
    with Store.open(bench.folder / "runs.sqlite") as store:
        return {run.id: fold(store, run.id).funnel["evaluated"] for run in store.runs()}


def rounds(count: int, **more: Any) -> Protocol:
    return Protocol(backend="cpp", limits={"rounds": count}, **more)


# ---------------------------------------------------------------- protocols


def test_every_arm_has_the_same_budget_and_stands_for_itself(bench: Bench, model: Model) -> None:
    replies = [answer(1.0 + number / 100) for number in range(200)]
    protocol = rounds(4, models=model(replies))
    rows = bench.run(["one-shot", "best-of-n", "refinement"], protocol)
    steps = {(row.arm, row.problem[-3:]): row.cost.steps for row in rows}
    assert steps == {
        (arm, problem): 1 if arm == "one-shot" else 4
        for arm in ("one-shot", "best-of-n", "refinement")
        for problem in ("1_p", "2_p", "3_p")
    }
    assert all(row.status == "correct" and row.at_length for row in rows)
    assert all(set(row.speedups) == {"eager", "compile"} for row in rows)
    assert all(row.cost.tokens > 0 for row in rows)
    assert [board.arm for board in boards(rows, "count")] == ["one-shot", "best-of-n", "refinement"]
    reached = [(point.step, point.speedup) for point in rows[1].curve]
    assert reached == sorted(reached) and 1 <= reached[0][0] <= reached[-1][0] <= 4


def test_winners_are_kept_with_their_evidence(bench: Bench, model: Model) -> None:
    (row, *_) = bench.run(["one-shot"], rounds(1, models=model([answer(2.0)])))
    path = bench.folder / "winners" / "one-shot-strict" / "level1" / "1_p.py"
    assert path.read_text() == PROGRAM.format(2.0)
    evidence = Evaluation.model_validate_json(path.with_suffix(".json").read_text())
    assert evidence.candidate_hash == row.winner


def test_arms_without_a_common_limit_are_not_begun(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="2 arms without a limit"):
        make_plans(["islands", "greedy"], [], Protocol(backend="cpp"))


@pytest.mark.parametrize(
    ("methods", "told", "what"),
    [
        (["sorcery"], [], "no method is called 'sorcery'"),
        (["one-shot"], [], "a model is to be asked, but none is named"),
        ([], ["nowhere"], "no such folder"),
    ],
)
def test_what_cannot_be_an_arm_is_told_before_any_work(
    methods: list[str], told: list[str], what: str
) -> None:
    with pytest.raises(BadInput, match=what):
        make_plans(methods, told, Protocol(backend="cpp"))


def test_programs_from_elsewhere_are_judged_and_what_is_caught_is_told(
    bench: Bench, tmp_path: Path
) -> None:
    folder = tmp_path / "foreign"
    for name, speed in (("1_p/1_slow", 1.5), ("1_p/2_fast", 3.0), ("2_p", -2), ("2_p/x", -1)):
        path = folder / "level1" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PROGRAM.format(speed))
    rows = by_problem(bench.run([], Protocol(backend="cpp"), told=[f"theirs={folder}"]))
    assert {name: row.status for name, row in rows.items()} == {
        "1_p": "correct",
        "2_p": "incorrect",
        "3_p": "incorrect",
    }
    assert rows["1_p"].speedups["eager"].value == 3.0
    assert rows["1_p"].arm == "theirs"
    assert rows["2_p"].ends == {"cheating/decoy-kernel": 1, "incorrect/wrong-values": 1}
    caught = {(each.program, each.reason.value) for each in rows["2_p"].caught}
    assert caught == {("level1/2_p.py", "decoy-kernel"), ("level1/2_p/x.py", "wrong-values")}
    assert "holds no program" in rows["3_p"].why


# ---------------------------------------------------------------- trouble


@pytest.mark.parametrize("status", TROUBLE)
def test_a_problem_that_cannot_be_judged_is_a_row_and_costs_nobody_anything(
    bench: Bench, model: Model, status: str
) -> None:
    engine = Troubled("2_p", TROUBLE[status])
    protocol = rounds(2, models=model([answer(2.0)]))
    rows = by_problem(bench.run(["one-shot", "best-of-n"], protocol, engine))
    assert rows["2_p"].status == status
    assert rows["2_p"].why == str(TROUBLE[status])
    assert rows["2_p"].cost.tokens == 0
    assert (rows["1_p"].status, rows["3_p"].status) == ("correct", "correct")
    assert engine.asked == 1  # for both arms
    # It is known now, and only looked at again by those who ask for that.
    again = by_problem(bench.run(["one-shot", "best-of-n"], protocol, engine))
    assert (again["2_p"].status, engine.asked, bench.watch.known) == (status, 1, 6)
    mended = by_problem(bench.run(["one-shot", "best-of-n"], protocol, again=True))
    assert mended["2_p"].status == "correct"


def test_a_file_that_cannot_be_read_is_a_row_too(bench: Bench, model: Model) -> None:
    bench.problems[1] = replace(bench.problems[1], task=None, why_broken="2_p.py:1: nonsense")
    rows = by_problem(bench.run(["one-shot"], rounds(1, models=model([answer(2.0)]))))
    assert (rows["2_p"].status, rows["2_p"].why) == ("broken", "2_p.py:1: nonsense")
    assert (rows["1_p"].status, rows["3_p"].status) == ("correct", "correct")


def test_a_defect_of_the_evaluator_costs_one_problem_and_is_tried_again(
    bench: Bench, model: Model
) -> None:
    protocol = rounds(1, models=model([answer(2.0)]))
    broken = Troubled("1_p", InternalError("the judge died"))
    rows = by_problem(bench.run(["one-shot"], protocol, broken))
    assert (rows["1_p"].status, rows["1_p"].why) == ("failed", "the judge died")
    assert rows["2_p"].status == "correct"
    assert by_problem(bench.run(["one-shot"], protocol))["1_p"].status == "correct"
    assert bench.watch.known == 2


class Failing:
    """A method of another package that no program is fast enough for."""

    def __init__(self, config: RunConfig) -> None: ...

    def next(self, state: RunState, free: Sequence[str], rng: Random) -> Ask:
        return Ask(worker=free[0])

    def hear(self, event: Event, state: RunState) -> None:
        if state.run.startswith("2_p") and isinstance(event, StepEvaluated):
            raise RuntimeError("too slow")


def test_what_goes_wrong_in_a_method_costs_one_problem_and_is_tried_again(
    bench: Bench, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered: dict[str, Any] = {"theirs": Failing}
    monkeypatch.setattr(methods, "offered_methods", lambda: offered)
    monkeypatch.setattr(methods, "load_method", offered.__getitem__)
    protocol = rounds(1, models=model([answer(2.0)]), proposers=("model",))  # without seeds
    rows = by_problem(bench.run(["theirs"], protocol))
    assert rows["2_p"].status == "failed"
    said = "method theirs failed in hear(StepEvaluated): RuntimeError: too slow"
    assert rows["2_p"].why.startswith(said)
    assert rows["1_p"].status == "correct"
    offered["theirs"] = METHODS["one-shot"]
    assert by_problem(bench.run(["theirs"], protocol))["2_p"].status == "correct"
    assert bench.watch.known == 2


def test_what_the_machine_lacks_ends_everything(bench: Bench, model: Model) -> None:
    lacking = Troubled("1_p", MissingPrerequisite("no g++", hint="get it"))
    with pytest.raises(MissingPrerequisite, match=r"no g\+\+"):
        bench.run(["one-shot"], rounds(1, models=model([answer(2.0)])), lacking)


# ---------------------------------------------------------------- stopping and going on


def test_what_was_stopped_goes_on_and_nothing_is_done_twice(bench: Bench, model: Model) -> None:
    replies = [answer(1.0 + number / 100) for number in range(200)]
    protocol = rounds(4, models=model(replies))
    stopped = bench.run(["best-of-n"], protocol, stop_after=8)
    assert "unfinished" in {row.status for row in stopped}
    rows = bench.run(["best-of-n"], protocol, at_once=2)
    assert {row.status for row in rows} == {"correct"}
    assert list(evaluated(bench).values()) == [4, 4, 4]


def test_the_budget_of_the_whole_counts_what_was_spent_before(bench: Bench, model: Model) -> None:
    replies = [answer(1.0 + number / 100) for number in range(200)]
    protocol = rounds(4, models=model(replies))
    first = bench.run(["best-of-n"], protocol, in_all=Budget(evaluations=6))
    assert sorted(row.status for row in first) == ["correct", "unfinished", "unfinished"]
    assert "the 6 evaluations for all problems are spent" in {row.why for row in first}
    assert 6 <= sum(evaluated(bench).values()) <= 7
    spent = sum(evaluated(bench).values())
    assert [
        row.status for row in bench.run(["best-of-n"], protocol, in_all=Budget(evaluations=6))
    ] == [row.status for row in first]
    assert sum(evaluated(bench).values()) == spent
    more = bench.run(["best-of-n"], protocol, in_all=Budget(evaluations=99))
    assert {row.status for row in more} == {"correct"}


@pytest.mark.parametrize("change", ["budget", "problem"])
def test_other_work_is_not_mixed_into_a_result(bench: Bench, model: Model, change: str) -> None:
    settings = model([answer(2.0)])
    bench.run(["one-shot"], rounds(1, models=settings))
    if change == "problem":
        task = bench.problems[0].task
        assert task is not None
        other = task.model_copy(update={"source": task.source + "# changed\n"})
        bench.problems[0] = replace(bench.problems[0], task=other)
    with pytest.raises(BadInput, match="cannot be in one result"):
        bench.run(["one-shot"], rounds(2 if change == "budget" else 1, models=settings))


def test_where_nothing_can_be_timed_a_correct_program_solves_its_problem(
    bench: Bench, tmp_path: Path
) -> None:
    """As Triton's without a GPU: it is right, and earns nothing for speed."""

    class Untimed(TrivialEngine):
        def _evaluate(self, *asked: Any) -> Evaluation:
            timed = super()._evaluate(*asked)
            return timed.model_copy(update={"timing": None, "interpreted": True})

    (tmp_path / "1_p.py").write_text(PROGRAM.format(2.0))
    (row, *_) = bench.run([], Protocol("cpp"), Untimed(lambda _: 2.0), told=[str(tmp_path)])
    assert (row.status, row.speedups, row.winner is not None) == ("correct", {}, True)
    assert (bench.folder / "winners" / "told-strict" / "level1" / "1_p.py").is_file()
