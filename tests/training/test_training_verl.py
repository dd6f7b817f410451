"""The scorer that verl calls: the same rewards as in our own training."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kernel_smith.errors import BadInput
from kernel_smith.records import Candidate, Reason, Task
from kernel_smith.testing.trivial import TrivialEngine
from kernel_smith.training import verl_reward

SPEEDS: dict[str, float | Reason] = {"[0 + i]": 6.0, "[i + 1]": Reason.WRONG_VALUES}


def speed(candidate: Candidate) -> float | Reason:
    return next((s for mark, s in SPEEDS.items() if mark in candidate.source), 2.0)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> TrivialEngine:
    made = TrivialEngine(speed)
    monkeypatch.setattr(verl_reward, "_engine", lambda address, process: made)
    return made


@pytest.fixture
def about(small_task: Task, honest_source: str) -> dict[str, Any]:
    return {
        "id": "row-1",
        "backend": "cpp",
        "parent_code": honest_source,
        "task": small_task.model_dump_json(),
    }


def score(answer: str, about: dict[str, Any]) -> float:
    return verl_reward.compute_score("kernel_rl", answer, "{}", about)


def fenced(source: str) -> str:
    return f"```python\n{source}\n```"


@pytest.mark.usefixtures("engine")
def test_a_faster_program_is_worth_its_gain_over_the_parent_less_1(
    about: dict[str, Any], honest_source: str
) -> None:
    faster = fenced(honest_source.replace("y[i]", "y[0 + i]"))
    assert score(faster, about) == pytest.approx(0.99 * 3 - 1)
    assert score(faster, about | {"parent_code": None}) == pytest.approx(0.99 * 6 - 1)


@pytest.mark.usefixtures("engine")
def test_a_wrong_program_is_worth_nothing(about: dict[str, Any], honest_source: str) -> None:
    assert score(fenced(honest_source.replace("y[i]", "y[i + 1]")), about) == 0


def test_what_changes_nothing_is_worth_nothing_and_costs_nothing(
    engine: TrivialEngine, about: dict[str, Any], honest_source: str
) -> None:
    assert score("I would rather not.", about) == 0
    assert score(fenced(honest_source), about) == 0
    assert score(fenced(f"# in other words\n{honest_source}"), about) == 0
    assert not engine.evaluated


def test_rows_with_a_reference_alone_are_taken(engine: TrivialEngine, honest_source: str) -> None:
    truth = json.dumps({"reference_code": "class Model: ..."})
    assert verl_reward.compute_score("kernel_rl", fenced(honest_source), truth) >= 0
    assert engine.evaluated


def test_whoever_is_missing_is_named(
    about: dict[str, Any], honest_source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KERNEL_SMITH_ENGINE", raising=False)
    with pytest.raises(BadInput, match="KERNEL_SMITH_ENGINE"):
        score(fenced(honest_source.replace("y[i]", "y[0 + i]")), about)


def test_an_engine_is_opened_by_its_address(
    about: dict[str, Any], honest_source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNEL_SMITH_ENGINE", "simulated:1:0.01")
    answers = [fenced(honest_source.replace("y[i]", f"y[{n} - {n} + i]")) for n in range(8)]
    try:
        assert max(score(answer, about | {"parent_code": None}) for answer in answers) > 0
    finally:
        verl_reward._engine.cache_clear()
