"""`kernel-smith ship`: which runs can be shipped. What it writes is in tests/shipping."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kernel_smith
from kernel_smith import api
from kernel_smith.evaluation import engines
from kernel_smith.shipping import found
from kernel_smith.testing.trivial import TrivialEngine

Cli = Callable[..., Any]


@pytest.fixture
def pretended(slow: Path, honest_source: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Path]:
    """The store of a run whose figures are made up."""
    store = slow / "runs.sqlite"
    monkeypatch.chdir(slow)
    engine = contextlib.nullcontext(TrivialEngine(lambda candidate: 2.0))
    monkeypatch.setattr(api, "open_engine", lambda *_: engine)
    kernel_smith.optimize(
        "slow",
        starts=[honest_source],
        proposers=["mutator"],
        evaluations=1,
        store=store,
        progress=False,
    )
    return "--store", store


def test_the_best_of_a_run_is_written(
    cli: Cli, pretended: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(found, "_check_usable", lambda *_: None)
    done = cli("ship", "latest", "-o", "parcel", "--json", *pretended)
    assert done.code == (0 if done.json["confirmed"] else 1)
    names = ["fast_slow", "test_fast_slow.py", "benchmark_fast_slow.py", "PULL_REQUEST.md"]
    assert [Path(path).name for path in done.json["written"]] == names
    manifest = json.loads((tmp_path / "parcel" / "fast_slow" / "manifest.json").read_text("utf-8"))
    assert manifest["facts"]["run"] == done.json["run"]
    again = cli("ship", "latest", "-o", "parcel", "--name", "mine", *pretended)
    assert "next: cd parcel" in again.out
    Path("taken").touch()
    refused = cli("ship", "latest", "-o", "taken", *pretended)
    refused.complains(2, "taken/fast_slow: cannot be written (File exists)", "another folder")
    Path("half").mkdir()
    Path("half", "tests").touch()
    refused = cli("ship", "latest", "-o", "half", *pretended)
    refused.complains(2, "half: cannot be written (File exists)", "another folder")


def test_figures_that_are_made_up_are_not_shipped(cli: Cli, pretended: tuple[str, Path]) -> None:
    cli("ship", "latest", "-o", "parcel", *pretended).complains(2, "has not run on the hardware")


def test_what_cannot_be_shipped_is_refused(cli: Cli, pretended: tuple[str, Path]) -> None:
    cli("ship", "latest", "-o", "parcel", "--store", "none.sqlite").complains(2, "none.sqlite")
    cli("ship", "absent", "-o", "parcel", *pretended).complains(2, "absent")
    cli("ship", "latest", *pretended).complains(2, "--output")


THEIRS = """
import torch


def unsorted(x, scale=1):
    return scale * x
"""


def test_a_kernel_is_held_against_the_function_of_a_project(
    cli: Cli, pretended: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "ops.py").write_text(THEIRS)
    engine = contextlib.nullcontext(TrivialEngine(lambda candidate: 2.0))
    monkeypatch.setattr(engines, "open_engine", lambda *_: engine)
    words = ("ship", "verify", "latest", "--checkout", "project")
    done = cli(*words, "--function", "ops.py:unsorted", *pretended)
    assert done.code == 0
    assert "| workload | before | after | speedup (95%) |" in done.out
    assert "of ops.py:unsorted, on" in done.out and "next: kernel-smith ship" in done.out
    cli(*words, "--function", "ops.py", *pretended).complains(2, "expected FILE:FUNCTION")
    cli(*words, "--function", "ops.py:missing", *pretended).complains(2, "called 'missing'")
    broken = ("--function", "ops.py:unsorted", "--call", "unsorted(x")
    cli(*words, *broken, *pretended).complains(2, "is no Python")


def test_a_target_is_asked_for_with_its_checkout(cli: Cli, pretended: tuple[str, Path]) -> None:
    patch = ("ship", "latest", "-o", "mine.patch", *pretended)
    cli(*patch, "--project", "sglang").complains(2, "--project and --checkout go together")
    cli(*patch, "--project", "pytorch", "--checkout", ".").complains(2, "no project is called")
    cli(*patch, "--project", "vllm", "--checkout", ".").complains(2, "the kernel is cpp")
