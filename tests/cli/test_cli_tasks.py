"""`kernel-smith tasks`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernel_smith.evaluation.engines import local
from kernel_smith.records import Task
from kernel_smith.tasks import builtin_tasks

Cli = Callable[..., Any]

DEAD = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x - 100)

def get_inputs():
    return [torch.randn(64)]
"""


def test_list_names_every_built_in_task(cli: Cli) -> None:
    names = {task.name for task in builtin_tasks()}
    done = cli("tasks", "list")
    assert done.code == 0
    assert all(name in done.out for name in names)
    assert "next: kernel-smith tasks show" in done.out
    listed = cli("tasks", "list", "--json").json["tasks"]
    assert {task["name"] for task in listed} == names
    assert all(task["description"] and task["family"] for task in listed)


def test_list_names_the_tasks_of_another_suite(cli: Cli) -> None:
    names = {task.name for task in builtin_tasks("gpu")}
    done = cli("tasks", "list", "--suite", "gpu")
    assert done.code == 0
    assert all(name in done.out for name in names)
    listed = cli("tasks", "list", "--suite", "gpu", "--json").json["tasks"]
    assert {task["name"] for task in listed} == names


def test_list_refuses_an_unknown_suite(cli: Cli) -> None:
    cli("tasks", "list", "--suite", "tpu").complains(2, "'tpu'", "`cpu`, `gpu`")


def test_show_asks_for_a_kernel_where_the_task_has_none(cli: Cli) -> None:
    done = cli("tasks", "show", "add_rms_norm_llm")
    assert done.code == 0
    assert "next: kernel-smith evaluate add_rms_norm_llm CANDIDATE" in done.out


def test_show_prints_settings_workloads_and_the_reference(cli: Cli) -> None:
    done = cli("tasks", "show", "row_softmax")
    assert done.code == 0
    for expected in (
        "softmax",
        "precision: strict",
        "workload wide",
        "class Model",
        "start_cpp.py",
    ):
        assert expected in done.out
    assert "next: kernel-smith evaluate row_softmax" in done.out


def test_show_as_json_is_the_record(cli: Cli) -> None:
    shown = cli("tasks", "show", "row_softmax", "--json").json
    expected = next(task for task in builtin_tasks() if task.name == "row_softmax")
    assert Task.model_validate(shown) == expected


def test_show_takes_files_and_folders(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "dead_relu"
    folder.mkdir()
    (folder / "task.py").write_text(DEAD)
    for argument in (folder, folder / "task.py"):
        assert cli("tasks", "show", argument, "--json").json["name"] == "dead_relu"


def test_a_file_whose_name_is_no_text_is_refused(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"m\xf6dul.py")
    path.write_text(DEAD)
    cli("tasks", "show", path).complains(2, "name cannot be printed", "rename the file")


def test_a_terminal_that_lacks_letters_shows_question_marks(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text('"""Schöner."""\n' + DEAD, encoding="utf-8")
    command = [sys.executable, "-m", "kernel_smith", "tasks", "show", str(path)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Sch?ner." in done.stdout


@pytest.mark.parametrize("command", [["tasks", "show"], ["tasks", "check"], ["evaluate"]])
def test_an_unknown_task_names_what_is_near(cli: Cli, command: list[str]) -> None:
    cli(*command, "row_sofmax").complains(2, "row_sofmax", "did you mean `row_softmax`")
    cli(*command, "zzzzzz").complains(2, "zzzzzz", "kernel-smith tasks list")


def test_check_admits_a_sound_task(cli: Cli, shared_judge: None, small_task: Task) -> None:
    done = cli("tasks", "check", small_task.path)
    assert done.code == 0
    assert "shifted_relu: admitted" in done.out
    found = cli("tasks", "check", small_task.path, "--json", "--quiet")
    assert found.json == {"task": "shifted_relu", "admitted": True, "findings": []}
    assert found.err == ""


def test_check_refuses_what_cannot_discriminate(
    cli: Cli, shared_judge: None, tmp_path: Path
) -> None:
    (tmp_path / "dead.py").write_text(DEAD)
    done = cli("tasks", "check", "dead.py")
    assert done.code == 1
    assert "workload default: zero-output" in done.out
    assert "dead: refused" in done.out
    assert "--admit zero-output" in done.out
    found = cli("tasks", "check", "dead.py", "--json").json
    assert found["admitted"] is False
    assert {"workload": "default", "finding": "zero-output"} in found["findings"]


RANDOM = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(torch.relu(x))

def get_inputs():
    return [torch.randn(64, 64)]
"""


def test_dropout_in_train_mode_is_told_to_be_evaluated(
    cli: Cli, shared_judge: None, tmp_path: Path, honest_source: str
) -> None:
    (tmp_path / "random.py").write_text(RANDOM)
    done = cli("tasks", "check", "random.py")
    assert done.code == 1
    assert "random-reference: the same inputs give another output" in done.out
    assert "end Model.__init__ with self.eval(); " in done.out
    assert "draw in get_inputs what forward draws itself" in done.out, "as F.dropout does"
    assert "for which the output varies" not in done.out, "nothing about the inputs"
    (tmp_path / "mine.py").write_text(honest_source)
    cli("evaluate", "random.py", "mine.py").complains(2, "random-reference", "self.eval()")
    mended = RANDOM.replace("Dropout(0.5)\n", "Dropout(0.5)\n        self.eval()\n")
    (tmp_path / "random.py").write_text(mended)
    assert cli("tasks", "check", "random.py").code == 0


ENDLESS = """
import time
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        while True:
            time.sleep(1)

def get_inputs():
    return [torch.randn(64)]
"""


def test_a_reference_that_never_returns_comes_to_an_end(
    cli: Cli, tmp_path: Path, honest_source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "endless.py").write_text(ENDLESS)
    done = cli("tasks", "check", "endless.py", "--patience", 4)
    done.complains(2, "endless.py: examining the reference did not end within 4 s", "--patience 40")
    # Others see of it that no judge answers: that takes no judge.
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexec sleep 600\n")
    silent.chmod(0o755)
    monkeypatch.setattr(local.sys, "executable", str(silent))
    (tmp_path / "any.py").write_text(honest_source)
    done = cli("evaluate", "endless.py", "any.py", "--patience", 1)
    done.complains(2, "endless.py: the evaluation did not end within 1 s", "--patience 10")
    run = ("optimize", "endless.py", "--start", "any.py", "--proposer", "mutator")
    done = cli(*run, "--patience", 1, "--store", "r.sqlite")
    done.complains(2, "any.py of task endless did not end within 1 s", "--patience 10")


def test_check_respects_what_the_task_admits(cli: Cli, shared_judge: None, tmp_path: Path) -> None:
    findings = ["zero-output", "input-independent", "accepts-zeros", "accepts-mean"]
    (tmp_path / "dead.py").write_text(f"TASK = {{'admit': {findings}}}\n{DEAD}")
    done = cli("tasks", "check", "dead.py", "--json")
    assert done.code == 0
    assert done.json["admitted"] is True
