"""`kernel-smith data mine`, as a command of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from kernel_smith.cli.data_mine import mine as command
from kernel_smith.trajectories import mine as mining
from kernel_smith.trajectories.mine import MineSettings
from kernel_smith.trajectories.mine.state import Origin, Summary

ORIGIN = Origin(
    package="made", version="1", licence="MIT", file="made/a.py", line=3, class_name="Gate"
)


def summary_of(tasks: int) -> Summary:
    return Summary(
        found=9,
        standalone=5,
        ran=3,
        written=tasks,
        refusals={"needs-import": 4},
        families={},
        tasks={"made_gate": ORIGIN} if tasks else {},
    )


def invoke(monkeypatch: pytest.MonkeyPatch, tasks: int, *words: str) -> tuple[Any, MineSettings]:
    given: list[MineSettings] = []

    def pretend(settings: MineSettings, report: object) -> Summary:
        given.append(settings)
        return summary_of(tasks)

    monkeypatch.setattr(mining, "mine", pretend)
    app = typer.Typer()
    app.command()(command)
    done = CliRunner().invoke(app, list(words))
    return done, given[0]


def test_options_reach_the_miner_and_the_summary_is_json(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("one", "two", "-o", "out", "--limit", "5", "--workers", "2", "--no-admission")
    done, given = invoke(monkeypatch, 1, *words, "--json")
    assert given == MineSettings(["one", "two"], Path("out"), 5, 2, 20, admission=False)
    assert done.exit_code == 0
    assert json.loads(done.stdout)["tasks"]["made_gate"]["licence"] == "MIT"


def test_no_task_at_all_is_a_negative_result(monkeypatch: pytest.MonkeyPatch) -> None:
    done, _ = invoke(monkeypatch, 0, "one", "-o", "out", "-q")
    assert done.exit_code == 1


def test_counts_and_the_next_command_are_shown(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(mining, "mine", lambda settings, report: summary_of(1))
    with pytest.raises(typer.Exit):
        command(["made"], Path("out"), quiet=True)
    shown = capfd.readouterr().out
    assert "9 classes, 5 stand alone, 3 run, 1 written" in shown
    assert "needs-import" in shown
    assert "kernel-smith tasks show out/made_gate.py" in shown
