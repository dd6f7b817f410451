"""`kernel-smith bench`: from suites to a result, also where something gets in the way."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernel_smith.errors import BadInput, InternalError, UserError
from kernel_smith.evaluation.engines import LocalEngine, pool
from kernel_smith.records import Evaluation, StepEvaluated, Task
from kernel_smith.store import Store
from kernel_smith.testing.openai_server import OpenAIServer, Reply

Cli = Callable[..., Any]

ODD = {  # what is changed in a good problem
    "1_good": ("", ""),
    "2_broken": ("torch.relu(x) + 1", "self.missing(x)"),
    "3_hanging": ("", ""),
    "4_refused": ("torch.relu(x) + 1", "torch.zeros_like(x)"),
    "5_too_large": ("torch.randn(32, 64)", "torch.randn(1 << 20, 1 << 24)"),
    "6_not_python": ("def get_inputs()", "def get_inputs("),
}
LONG = 120.0
MADE_UP = ("--engine", "simulated:4:0.05", "--lanes", 2, "--proposer", "tuner")
SOME = ("cpu", "--problem", "row_*", "--problem", "matmul")  # four problems
SEARCHED = (*MADE_UP, "--proposer", "mutator", "--evaluations", 8)


@pytest.fixture
def hanging(borrowing: type[LocalEngine], monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes ask the judge of the test run, except about one problem that never returns. Its answers
    count however long they take."""

    class Hanging(borrowing):  # type: ignore[misc, valid-type]
        def __init__(self, cache: object) -> None:
            super().__init__(cache)
            self._given_up = threading.Event()

        def evaluate(self, task: Task, *rest: Any, **more: Any) -> Evaluation:
            if task.name != "3_hanging":
                return super().evaluate(task, *rest, **more)  # type: ignore[no-any-return]
            assert self._given_up.wait(LONG)
            raise InternalError("the question was abandoned")

        def abandon(self) -> None:
            self._given_up.set()

    monkeypatch.setattr(pool, "LocalEngine", Hanging)


def test_a_folder_of_odd_problems_comes_to_an_end_and_says_so_for_each(
    cli: Cli,
    tmp_path: Path,
    small_task: Task,
    honest_source: str,
    quick_runs: None,
    hanging: None,
) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "programs").mkdir()
    for name, change in ODD.items():
        (tmp_path / "odd" / f"{name}.py").write_text(small_task.source.replace(*change))
        (tmp_path / "programs" / f"{name}.py").write_text(honest_source)
    words = ("odd", "--told", "programs", "--baseline", "eager", "--patience", 2, "-o", "out")
    done = cli("bench", *words, "--json")
    assert {row["problem"]: row["status"] for row in done.json["rows"]} == {
        "1_good": "correct",
        "2_broken": "broken",
        "3_hanging": "hung",
        "4_refused": "refused",
        "5_too_large": "too-large",
        "6_not_python": "broken",
    }
    assert done.code == 0  # all that could be judged are solved
    why = {row["problem"]: row["why"] for row in done.json["rows"]}
    assert "2_broken.py:9: workload default: Model.forward raised AttributeError" in why["2_broken"]
    assert "did not end within 2 s" in why["3_hanging"]
    assert "cannot discriminate" in why["4_refused"]
    assert "memory does not suffice" in why["5_too_large"]
    assert "6_not_python.py:12: " in why["6_not_python"]
    assert str(tmp_path) not in (tmp_path / "out" / "result.json").read_text()
    # The winner is right when it is judged again; how fast, so few rounds do not say.
    (again,) = cli("bench", "verify", "out", "--json").json["verified"]
    assert again["verdict"] in ("stands", "slower")


def test_models_are_compared_on_a_folder_at_the_same_budget(
    cli: Cli, tmp_path: Path, small_task: Task, honest_source: str, quick_runs: None
) -> None:
    """The first answer is of no use, the others are: one shot is too few."""
    (tmp_path / "problems").mkdir()
    (tmp_path / "problems" / "1_shifted_relu.py").write_text(small_task.source)
    useful = Reply(f"Change: all.\n```python\n{honest_source}```\n")
    with OpenAIServer([Reply("I would rather not."), useful]) as server:
        words = ("--method", "one-shot", "--method", "best-of-n", "--rounds", 2)
        asked = ("--model", f"m@{server.base_url}", "--baseline", "eager", "--json")
        done = cli("bench", "problems", *words, *asked)
    assert done.code == 1
    rows = {row["arm"]: row for row in done.json["rows"]}
    assert {arm: row["status"] for arm, row in rows.items()} == {
        "one-shot": "incorrect",
        "best-of-n": "correct",
    }
    assert rows["one-shot"]["ends"] == {"no program": 1}
    assert (rows["one-shot"]["cost"]["steps"], rows["best-of-n"]["cost"]["steps"]) == (1, 2)
    assert all(row["cost"]["tokens"] > 0 for row in rows.values())


# ---------------------------------------------------------------- made-up evaluations


def test_models_that_gave_nothing_are_an_error_in_the_end(
    cli: Cli, tmp_path: Path, refuse_seeds: Callable[[type[UserError]], None]
) -> None:
    refuse_seeds(BadInput)
    words = ("--method", "best-of-n", "--method", "greedy", "--evaluations", 3, "--rounds", 3)
    with OpenAIServer([Reply("I would rather not.")]) as server:
        model = ("--model", f"m@{server.base_url},retries=0", "--engine", "simulated:2:0.01")
        done = cli("bench", "cpu", "--problem", "row_max_index", *words, *model, "-o", "out")
    done.complains(3, "no model gave a new program in this benchmark (", "gave no usable program")
    assert f"{model[1]} --engine simulated:2:0.01 -o out --output OTHER)" in done.err
    assert (tmp_path / "out" / "result.json").exists(), "what others found is there"
    assert "greedy (strict): 1 of 1 problems solved" in done.out


def test_a_result_is_made_shown_reported_and_compared(cli: Cli, tmp_path: Path) -> None:
    done = cli("bench", *SOME, *SEARCHED, "-o", "out")
    assert done.code == 0, done.err
    assert done.out.startswith("MADE UP")
    assert max(map(len, done.out.splitlines())) <= 80
    assert "embedded (strict): 4 of 4 problems solved" in done.out
    assert done.err.count(" left") == 4
    assert cli("bench", "report", "out").out.startswith("MADE UP")
    assert "| embedded | strict | 4 |" in cli("bench", "report", "out", "-f", "markdown").out
    boards = cli("bench", "report", "out", "-f", "json").json["boards"]
    lines = cli("bench", "report", "out", "-f", "csv").out.splitlines()
    assert len(lines) == 3 + len(boards[0]["categories"])
    same = cli("bench", "compare", "out", "out", "--fail-if", "lost > 0 or amsr.change < 0")
    assert (same.code, "4 problems" in same.out) == (0, True)
    assert cli("bench", "compare", "out", "out", "--fail-if", "gained == 0").code == 1
    verified = cli("bench", "verify", "out", "--engine", "simulated:4:0.01")
    assert (verified.code, "4 of 4 winners stand" in verified.out) == (0, True)


def test_parts_are_joined_with_their_winners(cli: Cli, tmp_path: Path) -> None:
    for name in ("row_softmax", "matmul"):
        words = ("cpu", "--problem", name, *SEARCHED, "-o", tmp_path / name)
        assert cli("bench", "run", *words).code == 0
    parts, whole = (tmp_path / "matmul", tmp_path / "row_softmax"), tmp_path / "whole"
    done = cli("bench", "join", *parts, "-o", whole)
    assert done.code == 0
    assert f"kernel-smith report {whole}" in done.out
    rows = json.loads((whole / "result.json").read_text())["rows"]
    assert [row["problem"] for row in rows] == ["row_softmax", "matmul"], "by age"
    for name in ("row_softmax", "matmul"):
        (winner,) = (tmp_path / name / "winners").rglob("*.py")
        copy = whole / winner.relative_to(tmp_path / name)
        assert copy.read_text() == winner.read_text()
        assert copy.with_suffix(".json").exists()
    assert cli("bench", "report", whole).code == 0
    cli("bench", "join", *parts, "-o", whole).complains(2, "holds a result already")


def test_the_same_command_does_nothing_twice(cli: Cli, tmp_path: Path) -> None:
    first = cli("bench", *SOME, *SEARCHED, "-o", "out", "--json").json
    second = cli("bench", *SOME, *SEARCHED, "-o", "out", "--json")
    assert second.json["rows"] == first["rows"]
    assert second.err == ""


def test_a_budget_for_all_leaves_the_rest_for_another_time(cli: Cli) -> None:
    done = cli("bench", *SOME, *SEARCHED, "-o", "out", "--total-evaluations", 6)
    assert done.code == 1
    assert "unfinished: " in done.out
    assert "next: kernel-smith bench cpu" in done.out
    assert cli("bench", *SOME, *SEARCHED, "-o", "out").code == 0


def test_problems_are_listed_without_working_on_them(cli: Cli, tmp_path: Path) -> None:
    done = cli("bench", "list", *SOME)
    assert "4 problems in 3 categories" in done.out
    (tmp_path / "bad.py").write_text("nonsense(")
    assert "broken: bad.py:1" in cli("bench", "list", "bad.py").out
    assert cli("bench", "list", "bad.py", "--json").json["problems"][0]["why_broken"]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("nowhere",), "no such suite"),
        (("cpu", "--method", "sorcery"), "no method is called"),
        (("cpu", "--method", "islands", "--method", "uct"), "without a limit"),
        (("cpu", "--told", "nowhere"), "no such folder"),
        (("cpu", "--baseline", "slow"), "no baseline is called"),
        (("cpu", "--precision", "fp32"), "no precision is called"),
        (("cpu", "--backend", "fortran"), "no backend is called"),
        (("cpu", "--level", "9"), "is selected"),
        ((".",), ".: no problems there"),
        (("report", "nowhere"), "expected a result"),
        (("report", "nowhere", "-f", "pdf"), "no format is called"),
        (("compare", "nowhere", "nowhere"), "expected a result"),
        (("compare", "nowhere", "nowhere", "--fail-if", "x"), "nothing is called `x`"),
        (("verify", "nowhere"), "expected a result"),
    ],
)
def test_bad_words_are_told_with_a_remedy(cli: Cli, words: tuple[str, ...], what: str) -> None:
    cli("bench", *words).complains(2, what)


# ---------------------------------------------------------------- killed and interrupted


def start(
    start_program: Callable[..., subprocess.Popen[str]], *more: object
) -> subprocess.Popen[str]:
    """A benchmark that takes a few seconds, as a program of its own."""
    slower = ("--engine", "simulated:2:0.15", "--lanes", 2, "--proposer", "tuner")
    limits = ("--proposer", "mutator", "--evaluations", 8, "-o", "out")
    return start_program("bench", *SOME, *slower, *limits, *more)


def wait_for_events(path: Path, count: int) -> None:
    deadline = time.monotonic() + LONG
    while time.monotonic() < deadline:
        # It may be there, and nothing in it yet.
        with contextlib.suppress(UserError), Store.open(path) as store:
            if sum(run.events for run in store.runs()) >= count:
                return
        time.sleep(0.05)
    raise AssertionError("the benchmark did not begin")


def check_complete(path: Path) -> None:
    """Four runs with eight evaluations each, none of them twice."""
    with Store.open(path) as store:
        runs = store.runs()
        assert [run.state for run in runs] == ["ended"] * 4
        for run in runs:
            events = [event for _, event in store.events(run.id)]
            steps = Counter(event.step for event in events if isinstance(event, StepEvaluated))
            assert len(steps) == 8 and set(steps.values()) == {1}


@pytest.mark.slow
def test_a_benchmark_that_is_killed_goes_on_where_it_was(
    tmp_path: Path, start_program: Callable[..., subprocess.Popen[str]]
) -> None:
    store = tmp_path / "out" / "runs.sqlite"
    process = start(start_program)
    wait_for_events(store, 25)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=LONG)
    again = start(start_program, "--json")
    out, err = again.communicate(timeout=LONG)
    assert again.returncode == 0, err
    assert [row["status"] for row in json.loads(out)["rows"]] == ["correct"] * 4
    check_complete(store)


@pytest.mark.slow
def test_a_benchmark_that_is_interrupted_shows_what_it_has_and_how_to_go_on(
    tmp_path: Path, start_program: Callable[..., subprocess.Popen[str]]
) -> None:
    process = start(start_program)
    wait_for_events(tmp_path / "out" / "runs.sqlite", 25)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=LONG)
    assert process.returncode == 130, err
    assert "not solved: unfinished" in out
    assert "hint: go on: kernel-smith bench cpu" in err
