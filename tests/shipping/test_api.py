"""The functions of `kernel_smith`: what they take, and what they say of wrong arguments."""

from __future__ import annotations

import traceback
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import torch
from shipping_samples import NORM_KERNEL, WIDTH, RMSNorm

import kernel_smith as ks
from kernel_smith import api
from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.records import Budget, Candidate, Options, Reason, StepDropped, Task
from kernel_smith.runs.run import Run
from kernel_smith.shipping.found import Optimized
from kernel_smith.tasks import find_task
from kernel_smith.testing.trivial import TrivialEngine

NORM = RMSNorm()
ROWS = torch.randn(8, WIDTH)


@pytest.mark.parametrize(
    ("arguments", "named", "problem"),
    [
        ((3,), {}, "int cannot be optimized"),
        ((RMSNorm,), {}, "RMSNorm is a class, expected a module"),
        ((NORM,), {}, "a live module needs example_inputs"),
        (("row_softmax", ROWS), {}, "example_inputs with a task"),
        (("row_sofmax",), {}, "no task is called 'row_sofmax'"),
        (("row_softmax",), {"backend": "fortran"}, "fortran"),
        (("row_softmax",), {"minutes": 0}, "minutes is 0, expected a positive number"),
        (("row_softmax",), {"minutes": "5"}, "minutes is '5', expected a positive number"),
        (("row_softmax",), {"evaluations": 0}, "evaluations"),
        (("row_softmax",), {"minutes": 1, "budget": Budget(evaluations=1)}, "budget beside"),
        (("row_softmax",), {"budget": 3}, "budget is 3, expected a Budget"),
        (("row_softmax",), {"lanes": 0}, "lanes is 0, expected a positive integer"),
        (("row_softmax",), {"starts": "text"}, "starts is a text, expected a list"),
        (("row_softmax",), {"starts": [Path("a.py")]}, r"starts has \w+\('a.py'\) in it"),
        (("row_softmax",), {"proposers": "tuner"}, "proposers is a text, expected a list"),
        ((Path("none.py"),), {}, "none.py: no such file, expected a task file"),
        (("row_softmax",), {"models": Path("none.toml")}, "none.toml"),
        (("row_softmax",), {"precision": "double"}, "no precision is called 'double'"),
        (("row_softmax",), {"proposers": ["oracle"]}, "no proposer is called 'oracle'"),
        (("row_softmax",), {"engine": "nowhere"}, "not the address of an engine"),
    ],
)
def test_wrong_arguments_have_hints(
    arguments: tuple[Any, ...], named: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=problem) as caught:
        ks.optimize(*arguments, **{"store": tmp_path / "runs.sqlite", **named})
    assert f"hint: {caught.value.hint}" in "".join(traceback.format_exception(caught.value))


def test_evaluate_and_seed_say_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"absent\.py"):
        ks.evaluate("row_softmax", tmp_path / "absent.py")
    with pytest.raises(BadInput, match="candidate is a list, expected a path or a text"):
        ks.evaluate("row_softmax", [])  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=r"absent: no saved kernel \(No such file or directory\)"):
        ks.load(tmp_path / "absent")
    with pytest.raises(BadInput, match="no device is called 'tpu'"):
        ks.seed("row_softmax", device="tpu")


def test_a_run_without_a_beginning_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def search(run: Run, *_: object) -> str:
        why = "no seed: it draws random numbers"
        run._emit(StepDropped(step=0, proposer="seed", why=why, at=datetime.now(UTC)))
        return "no program to start from was accepted"

    monkeypatch.setattr(Run, "search", search)
    with pytest.raises(BadInput, match="was accepted; seed: no seed: it draws random numbers"):
        ks.optimize("row_softmax", store=tmp_path / "runs.sqlite", progress=False)


@pytest.fixture
def found() -> Optimized:
    task = find_task("row_softmax")
    candidate = Candidate(backend="cpp", source=NORM_KERNEL)
    evaluation = made_up(task, candidate, 2.5)
    return Optimized("run-1", task, candidate, evaluation, "the budget is spent", confirmed=True)


def test_results_show_themselves(found: Optimized) -> None:
    assert repr(found).startswith("Optimized(row_softmax on cpp, 2.5")
    assert "confirmed; run run-1)" in repr(found)
    html = found._repr_html_()
    assert html.count("<tr>") == 1 + sum(
        len(one.baselines) for one in found.evaluation.timing.workloads
    )


def test_a_kernel_that_is_slower_is_a_warning(found: Optimized) -> None:
    slower = made_up(found.task, found.candidate, 0.5)
    slow = Optimized("run-1", found.task, found.candidate, slower, "", confirmed=False)
    with (
        pytest.warns(UserWarning, match="the kernel is slower than eager: 0.5"),
        pytest.raises(BadInput),
    ):
        slow.module()


def test_what_ran_nowhere_is_not_used(found: Optimized) -> None:
    assert found.evaluation.made_up
    with pytest.raises(BadInput, match="has not run on the hardware"):
        found.module()


@pytest.mark.slow
@pytest.mark.usefixtures("lanes_share_the_judge")
def test_a_candidate_for_a_live_module_is_evaluated(
    quick: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "Options", lambda **named: quick.model_copy(update=named))
    evaluation = ks.evaluate(NORM, NORM_KERNEL, ROWS, progress=False)
    assert evaluation.ok, evaluation.message
    wrong = ks.evaluate(NORM, NORM_KERNEL.replace("* weight[i]", ""), ROWS, progress=False)
    assert not wrong.ok


def test_tasks_and_paths_are_targets(tmp_path: Path) -> None:
    task = find_task("row_softmax")
    assert isinstance(task, Task)
    with pytest.raises(BadInput, match="no method is called 'warp'"):
        ks.optimize(task, method="warp", store=tmp_path / "runs.sqlite")


def test_a_run_that_ends_before_its_first_program_wants_more_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Run, "search", lambda *_: "the budget of 60 seconds is spent")
    with pytest.raises(BadInput, match="60 seconds is spent") as caught:
        ks.optimize("row_softmax", minutes=1, store=tmp_path / "runs.sqlite", progress=False)
    assert "minutes=10" in caught.value.hint


def test_a_winner_that_could_not_be_confirmed_for_noise_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noisy = TrivialEngine(lambda _: 2.0, at_length=lambda _: Reason.TOO_NOISY)
    monkeypatch.setattr(api, "open_engine", lambda *_: nullcontext(noisy))
    named: dict[str, Any] = {"starts": [NORM_KERNEL], "proposers": ["mutator"], "evaluations": 1}
    found = ks.optimize(
        "row_softmax", store=tmp_path / "runs.sqlite", progress=False, backend="cpp", **named
    )
    assert found.evaluation.ok
    assert not found.confirmed
    assert 1.9 < found.speedup < 2
