"""One way to configure a run, for the command line, the library and benchmarks."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_smith.errors import BadInput
from kernel_smith.records import Budget, Task
from kernel_smith.runs.config import configure
from kernel_smith.testing.numbers import program

MODELS = {"models": [{"name": "m", "base_url": "http://127.0.0.1:1/v1"}]}


def test_naming_a_model_is_asking_it(task: Task) -> None:
    config = configure(task, "cpp", models=MODELS, starts=[program(1.0)])
    assert set(config.proposers) == {"model", "tuner", "mutator"}
    assert config.settings["model"] == MODELS


def test_a_model_that_is_to_be_asked_must_be_named(task: Task) -> None:
    with pytest.raises(BadInput, match="none is named"):
        configure(task, "cpp", preset="model", starts=[program(1.0)])


def test_as_many_are_asked_as_there_are_lanes(task: Task) -> None:
    few = configure(task, "cpp", models=MODELS, starts=[program(1.0)], lanes=1)
    many = configure(task, "cpp", models=MODELS, starts=[program(1.0)], lanes=8)
    assert (few.evaluations_in_flight, few.proposals_in_flight) == (1, 4)
    assert (many.evaluations_in_flight, many.proposals_in_flight) == (8, 8)


def test_the_tasks_own_kernel_is_what_a_run_starts_from(task: Task, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(program(2.0).source)
    brings = task.model_copy(update={"starts": {"cpp": str(path)}})
    config = configure(brings, "cpp", rebudget=lambda _: Budget(evaluations=3))
    (start,) = config.settings["start"]["programs"]
    assert start["source"] == program(2.0).source
    assert config.settings["seed"] == {"wanted": True, "left_out": []}
    assert config.budget == Budget(evaluations=3)


def test_a_starting_kernel_that_cannot_be_read_is_named(task: Task) -> None:
    broken = task.model_copy(update={"starts": {"cpp": "/no/such/kernel.py"}})
    with pytest.raises(BadInput, match=r"/no/such/kernel\.py: the starting kernel") as caught:
        configure(broken, "cpp")
    assert "--start FILE" in caught.value.hint


def test_only_those_who_are_named_take_part(task: Task) -> None:
    config = configure(task, "cpp", proposers=["mutator"], starts=[program(1.0)])
    assert config.proposers == {"mutator": 1.0}
    assert config.settings["seed"] == {"wanted": False, "left_out": []}
    with pytest.raises(BadInput, match="'oracle'"):
        configure(task, "cpp", proposers=["oracle"], starts=[program(1.0)])


def test_a_method_may_be_declared_in_a_file(task: Task, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('method = "islands"\nislands = 5\n[budget]\nevaluations = 7\n')
    config = configure(task, "cpp", method=str(path), starts=[program(1.0)])
    assert (config.method, config.islands, config.budget) == ("islands", 5, Budget(evaluations=7))
    path.write_text('method = "plan-edit"\n[settings.plan-edit.edits]\ntile = "Use tiles."\n')
    config = configure(task, "cpp", method=str(path), starts=[program(1.0)])
    assert config.settings["plan-edit"] == {"edits": {"tile": "Use tiles."}}
    path.write_text('method = "best-of-n"\n[budget]\nrounds = 3\n')
    config = configure(task, "cpp", method=str(path), models=MODELS)
    assert config.budget.rounds == 3 and config.settings["model"]["max_repairs"] == 0


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("method = islands", "not TOML"),
        ("islands = 3", "names no method"),
        ('method = "islands"\nisland = 3', "unknown setting 'island'"),
        ('method = "islands"\nislands = 0', "islands is 0"),
        ('method = "hoping"', "hoping"),
        (None, "cannot be read"),
    ],
)
def test_a_file_that_declares_no_method_is_refused(
    task: Task, tmp_path: Path, text: str | None, what: str
) -> None:
    path = tmp_path / "mine.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(BadInput, match=what):
        configure(task, "cpp", method=str(path), starts=[program(1.0)])
