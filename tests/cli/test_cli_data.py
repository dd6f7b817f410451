"""`kernel-smith data`."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.records import (
    Budget,
    Candidate,
    Proposal,
    Remeasured,
    RunConfig,
    RunStarted,
    StepEvaluated,
    StepProposed,
    Task,
)
from kernel_smith.store import Store, default_path

Cli = Callable[..., Any]

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CONFIG = RunConfig(backend="cpp", proposers={"model": 1}, budget=Budget(evaluations=9))


def program(*operations: str) -> Candidate:
    body = "".join(f"        x = torch.{operation}(x)\n" for operation in operations)
    head = "class ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
    return Candidate(source=f"import torch\n\n\n{head}{body}        return x\n")


def add_run(store: Store, name: str) -> None:
    """A first program, and one that is faster, each measured twice."""
    source = f"class Model:\n    def forward(self, x):\n        return torch.{name}(x)\n"
    task = Task(name=f"row_{name}", family="rows", source=source)
    store.append(name, RunStarted(run=name, task=task, config=CONFIG, at=AT))
    parents: tuple[str, ...] = ()
    operations = [name]
    for step, speedup in enumerate((1.0, 1.5)):
        operations.append(f"{name}_{step}")
        candidate = program(*operations)
        proposal = Proposal(candidate=candidate, proposer="model", parents=parents, summary="more")
        store.append(name, StepProposed(step=step, proposal=proposal, at=AT))
        measured = made_up(task, candidate, speedup).model_copy(update={"made_up": False})
        event = StepEvaluated(step=step, evaluation=measured, seconds=1, at=AT)
        store.append(name, event)
        again = Remeasured(candidate=candidate.content_hash, evaluation=measured, at=AT)
        store.append(name, again)
        parents = (candidate.content_hash,)


@pytest.fixture
def store(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where commands look for runs by default."""
    monkeypatch.delenv("KERNEL_SMITH_STORE", raising=False)
    path = default_path()
    with Store.open(path, create=True) as opened:
        for name in ("sin", "cos", "tan"):
            add_run(opened, name)
    return path


def test_build_says_what_it_made_and_how_to_go_on(cli: Cli, store: Path) -> None:
    done = cli("data", "build", "-o", "data", "--validation", "0.4")
    assert done.code == 0, done.err
    assert "6 examples of 6 steps" in done.out
    assert "validation: " in done.out
    assert "data/trl-sft/train.jsonl" in done.out
    assert "next: kernel-smith train sft data" in done.out
    assert "... examples to write: 6" in done.err
    assert Path("data/README.md").is_file()


def test_build_prints_json(cli: Cli, store: Path) -> None:
    done = cli("data", "build", store, "-o", "data", "--json", "--for", "rl", "--validation", "0")
    assert done.code == 0, done.err
    assert done.json["rows"] == {"train": 6}
    assert done.json["files"] == ["data/trl-rl/train.jsonl"]
    rows = [json.loads(line) for line in Path("data/trl-rl/train.jsonl").read_text().splitlines()]
    assert [row["mode"] for row in rows] == ["full", "edits"] * 3


def test_build_does_as_the_options_say(cli: Cli, store: Path) -> None:
    options = ["--run", "sin", "--filter", "correct", "--format", "messages", "--answer", "full"]
    done = cli("data", "build", "-o", "data", "-q", *options, "--prompt", "brief")
    assert done.code == 0, done.err
    assert done.err == ""
    assert "next: less data/README.md" in done.out
    lines = Path("data/messages/train.jsonl").read_text().splitlines()
    answers = [json.loads(line)["messages"][-1]["content"] for line in lines]
    assert len(answers) == 2
    assert all("```python" in answer for answer in answers)


def test_held_out_tasks_are_counted(cli: Cli, store: Path) -> None:
    done = cli("data", "build", "-o", "data", "--hold-out", "row_sin")
    assert "refused by: held-out 2" in done.out


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--for", "fun"),
        ("--prompt", "long"),
        ("--answer", "song"),
        ("--files", "csv"),
        ("--validation", "1.5"),
        ("--least-gain", "-1"),
        ("--max-prompt-tokens", "3"),
        ("--format", "csv"),
        ("--filter", "coffee"),
        ("--hold-out", "nobody"),
        ("--run", "nobody"),
    ],
)
def test_a_value_that_cannot_be_is_named(cli: Cli, store: Path, option: str, value: str) -> None:
    cli("data", "build", "-o", "data", "-q", option, value).complains(2, value)
    assert not Path("data").exists()


def test_without_a_store_the_message_says_how_to_get_one(cli: Cli, tmp_path: Path) -> None:
    done = cli("data", "build", "nowhere.sqlite", "-o", "data", "-q")
    done.complains(2, "nowhere.sqlite", "kernel-smith optimize")


def test_the_filters_explain_themselves(cli: Cli) -> None:
    done = cli("data", "filters")
    assert done.code == 0
    assert "best-step (rl)" in done.out
    rows = cli("data", "filters", "--json").json["filters"]
    assert {"faster", "tail", "held-out"} <= {row["name"] for row in rows}
    assert all(row["explains"].endswith(".") for row in rows)
