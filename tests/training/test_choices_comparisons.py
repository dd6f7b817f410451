"""The comparisons of choosers: what is held out stays out, and what is stopped goes on."""

from __future__ import annotations

import importlib.util
import json
import math
import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

import pytest
from test_choices_policies import examples, two_levels
from test_choices_training import questions

from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.proposers.chooser import read_policy
from kernel_smith.records import (
    Budget,
    Event,
    Interval,
    Proposal,
    Reason,
    RunConfig,
    RunStarted,
    Stage,
    StepEvaluated,
    StepProposed,
    Task,
)
from kernel_smith.testing.numbers import program
from kernel_smith.training.choices.questions import write_questions
from kernel_smith.training.choices.replay import ByOdds, replay
from kernel_smith.training.choices.rows import Judged, Parent
from kernel_smith.training.choices.table import State

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Scripts import one another by their names."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(FOLDER))
    yield
    for name in set(sys.modules) - before:
        if str(FOLDER) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_arm_by_odds_takes_what_was_said_and_anything_where_nothing_was() -> None:
    states = two_levels()
    sure = ByOdds({("", "start"): {"b": 1.0}, ("", "b"): {"e": 1.0}})
    assert replay(states, "start", lambda: sure, "s", 2) == pytest.approx([0.5, 0.7])
    silent = {replay(states, "start", lambda: ByOdds({}), str(n), 1)[0] for n in range(40)}
    assert len(silent) > 1


@pytest.mark.usefixtures("benchmarks")
def test_a_policy_without_some_families_says_so_and_knows_nothing_of_them(tmp_path: Path) -> None:
    choices = script("choices")
    known = examples()
    lone = known[0].choices[0].__class__("rare", "c", {"edit=rare": 1.0}, 1.0, 1.0)
    known.append(known[0].__class__("red", "red", "x86_64", "r", (lone, lone), 0))
    choices.write_policy(tmp_path / "all.json", {"made up": known}, [])
    choices.write_policy(tmp_path / "less.json", {"made up": known}, ["red"])
    assert "edit=rare" in read_policy(tmp_path / "all.json").kinds
    less = read_policy(tmp_path / "less.json")
    assert "edit=rare" not in less.kinds
    assert less.about.endswith("(made up), without red")


def seen(program: str, ends: tuple[float, float, float] | None, *, swept: bool) -> Judged:
    gain = Interval(value=ends[0], low=ends[1], high=ends[2]) if ends is not None else None
    stage, reason = (Stage.OK, None) if gain else (Stage.INCORRECT, Reason.WRONG_VALUES)
    return Judged(
        parent="p",
        task="t",
        edit="e",
        change="e: s",
        program=program,
        stage=stage,
        reason=reason,
        gain=gain,
        swept=swept,
    )


@pytest.mark.usefixtures("benchmarks")
def test_how_far_sweep_and_judge_are_apart_is_told_for_gains_and_for_others() -> None:
    twice, same, wide = (2.0, 1.9, 2.1), (1.0, 0.99, 1.01), (1.0, 0.8, 1.25)
    pairs = {
        "a": (twice, twice),
        "b": (twice, same),  # only seemed to gain
        "c": (same, wide),
        "d": (same, None),
        "e": (None, same),
        "f": (same, same),
    }
    parent = Parent.model_construct(program="p", task="t")
    state = State(
        parent,
        judged={name: seen(name, by, swept=False) for name, (_, by) in pairs.items()},
        swept={name: seen(name, by, swept=True) for name, (by, _) in pairs.items()},
    )
    found = script("choices_agreement").agreement([state])
    gained, others = found["sweep saw a gain"], found["others"]
    assert (gained["changes"], gained["timed by both"]) == (2, 2)
    assert gained["judge: faster beyond doubt"] == 1
    assert gained["judged over swept gain, geometric mean"] == pytest.approx(math.sqrt(0.5), 1e-3)
    assert gained["differ by as much as the intervals allow"] == 0.5
    assert others["changes"] == 4 and others["timed by both"] == 2
    assert others["right in the sweep, not for the judge"] == 1
    assert others["right for the judge, not in the sweep"] == 1
    assert others["differ by as much as the intervals allow"] == 1.0


@pytest.mark.usefixtures("benchmarks")
def test_what_no_interval_tells_of_is_found_and_nothing_where_they_tell_all() -> None:
    luck, rng = script("choices_agreement")._luck, random.Random(3)
    apart = [rng.gauss(0, 0.05) for _ in range(2000)]
    assert luck(apart, [0.03] * 2000) == pytest.approx(0.04, rel=0.15)
    assert luck(apart, [0.06] * 2000) == 0.0


@pytest.mark.usefixtures("benchmarks")
def test_figures_tell_one_choice_and_runs_apart_and_pairs_by_task() -> None:
    choices = script("choices")
    seen = choices.Seen()
    for arm, ahead in (("RL", 0.1), ("SFT", 0.0)):
        for task, level in (("a", 0.0), ("b", 1.0)):
            run = [level + ahead * after for after in range(1, choices.PROPOSALS + 1)]
            seen.runs[arm][task] = [run] * 3
            seen.choices[arm][task] = level + ahead
    found = choices.figures(seen)
    assert found["tasks"] == ["a", "b"]
    ratio = found["ratios"]["RL over SFT"]
    assert set(ratio) == {choices.ONCE, "1", "2", "4", "8"}
    for shown, gain in ((choices.ONCE, 0.1), ("1", 0.1), ("8", 0.8)):  # the same in both tasks
        assert ratio[shown] == pytest.approx([math.exp(gain)] * 3)
    value, low, high = found["reached"]["SFT"][choices.ONCE]
    assert (value, low, high) == pytest.approx((math.exp(0.5), 1.0, math.e))
    assert "trees over RL" not in found["ratios"]


@pytest.mark.usefixtures("benchmarks")
def test_parents_come_in_turns_and_children_after_them(tmp_path: Path) -> None:
    table = script("choices_table")
    tasks = table.tasks_in_turn(["matmul", "gelu_tanh"], 1)
    for name in ("matmul__b", "matmul__a", "gelu_tanh__a", "gelu_tanhs__a"):
        (tmp_path / f"{name}.py").write_text(f"# {name}")
    (tmp_path / "matmul").mkdir()
    (tmp_path / "matmul" / "1_c.py").write_text("# matmul c")
    programs = table.programs_in([tmp_path], tasks)
    assert [task.name for task, _ in programs[:2]] == [task.name for task in tasks]
    assert [task.name for task, _ in programs[2:]] == ["matmul", "matmul"]
    assert {each.source for _, each in programs} == {
        "# matmul__a",
        "# matmul__b",
        "# matmul c",
        "# gelu_tanh__a",
    }


@pytest.mark.slow
@pytest.mark.usefixtures("benchmarks")
def test_base_sft_and_rl_are_asked_about_families_that_they_never_saw(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = script("choices_model")
    write_questions(questions(), tmp_path / "questions.jsonl")
    words = ["choices_model.py", str(tmp_path), "--model", str(tiny_model), "--fold", "1"]
    words += ["--sft-steps", "1", "--rl-steps", "1", "--save-every", "1", "--rank", "2"]
    monkeypatch.setattr(sys, "argv", [*words, "--batch", "4", "--micro-batch", "4"])
    model.main()
    odds = tmp_path / "odds.jsonl"
    rows = [json.loads(line) for line in odds.read_text().splitlines()]
    (held,) = model.deal({each.family for each in questions()}, 6, 26)[0]
    learnt = (tmp_path / "fold-1.jsonl").read_text()
    assert f'"family":"{held}"' not in learnt and '"family":"' in learnt
    assert {row["task"] for row in rows if row["arm"] != model.BASE} == {held}
    assert [row["arm"] for row in rows].count(model.BASE) == 24
    assert {row["arm"] for row in rows} == {model.BASE, model.SFT, model.RL}
    assert all(len(row["odds"]) == 4 for row in rows)

    odds.write_text(odds.read_text()[:-9])  # as if it had been killed while it wrote
    model.main()
    assert [json.loads(line) for line in odds.read_text().splitlines()] == rows
    assert script("choices").arms_said(odds).keys() == {model.BASE, model.SFT, model.RL}


@pytest.mark.usefixtures("benchmarks")
def test_what_a_run_had_then_is_what_counts_and_tasks_count_once(tmp_path: Path) -> None:
    runs = script("chooser_runs")
    task = Task(name="numbers", source="class Model: pass")
    now = datetime.now(UTC)
    config = RunConfig(backend="cpp", proposers={"mutator": 1.0}, budget=Budget())
    events: list[Event] = [RunStarted(run="r", task=task, config=config, at=now)]
    for number, speed in enumerate((1.0, 1.5, 1.2, 3.0)):
        own = program(speed)
        proposal = Proposal(candidate=own, proposer="start")
        judged = made_up(task, own, speed)
        events.append(StepProposed(step=number, proposal=proposal, at=now))
        events.append(StepEvaluated(step=number, evaluation=judged, seconds=0.0, at=now))

    class Kept:
        def events(self, run: str) -> Iterator[tuple[int, Event]]:
            return enumerate(events)

    bests = [runs.best_after(Kept(), "r", count) for count in range(5)]
    assert bests == [None, program(1.0), program(1.5), program(1.5), program(3.0)]

    def row(gain: float) -> dict[str, object]:
        return {"10": {"same": False, "gain": {"value": gain}}, "40": {"same": True}}

    found = runs.summary({"a 0": row(2.0), "a 1": row(8.0), "b 0": row(1.0)})
    assert found["10"]["value"] == pytest.approx(math.sqrt(4.0 * 1.0))
    assert (found["10"]["tasks"], found["10"]["pairs"]) == (2, 3)
    assert found["40"]["value"] == found["40"]["low"] == found["40"]["high"] == 1.0
