"""The folder of a training: whose it is, from where it goes on, and what it keeps."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from kernel_smith.errors import BadInput
from kernel_smith.training.config import SftSettings
from kernel_smith.training.curves import draw_curves
from kernel_smith.training.folder import Folder
from kernel_smith.training.journal import Journal


def folder(
    path: Path, kind: Literal["sft", "rl"] = "sft", data: str = "abc", **more: Any
) -> Folder:
    return Folder(kind, SftSettings(data=Path("d"), model=Path("m"), output=path, **more), data)


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A folder with two checkpoints, and a third that was not written to its end."""
    path = tmp_path / "out"
    opened = folder(path)
    assert opened.open() is None
    opened.note("running")
    for step in (9, 10):
        (path / f"checkpoint-{step}").mkdir()
        (path / f"checkpoint-{step}" / "trainer_state.json").write_text("{}")
    (path / "checkpoint-11").mkdir()
    return path


def test_the_last_whole_checkpoint_is_where_it_goes_on(begun: Path) -> None:
    assert folder(begun).open() == begun / "checkpoint-10"


def test_a_longer_training_may_go_on_but_no_other(begun: Path) -> None:
    assert folder(begun, steps=1000, save_every=3).open() is not None
    with pytest.raises(BadInput, match="seed was 0, is 1") as caught:
        folder(begun, seed=1).open()
    assert "give a new --output" in caught.value.hint
    with pytest.raises(BadInput, match="other data"):
        folder(begun, data="xyz").open()
    with pytest.raises(BadInput, match="another kind"):
        folder(begun, kind="rl").open()


def test_settings_may_change_while_there_is_no_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "out"
    opened = folder(path)
    opened.open()
    opened.note("stopped")
    assert folder(path, seed=5).open() is None


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(BadInput, match="is not empty"):
        folder(tmp_path).open()
    with pytest.raises(BadInput, match="cannot be made"):
        folder(tmp_path / "thesis.txt" / "out").open()


def test_the_state_names_settings_and_versions(tmp_path: Path) -> None:
    opened = folder(tmp_path / "out")
    opened.open()
    opened.note("done", steps=3)
    info = json.loads((tmp_path / "out" / "training.json").read_text())
    assert (info["state"], info["steps"], info["settings"]["batch"]) == ("done", 3, 8)
    assert "kernel-smith" in info["versions"]


def test_metrics_after_the_checkpoint_are_forgotten_and_odd_numbers_left_out(
    tmp_path: Path,
) -> None:
    journal = Journal(tmp_path)
    for step in (1, 2, 3):
        journal.metrics(step, {"loss": 1.0 / step, "odd": float("nan"), "none": None})
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "lo')  # as a crash leaves it
    journal.forget_metrics_after(2)
    assert journal.read_metrics() == [{"step": 1, "loss": 1.0}, {"step": 2, "loss": 0.5}]


def test_curves_are_drawn_of_what_there_is(tmp_path: Path) -> None:
    path = tmp_path / "curves.png"
    assert not draw_curves([{"step": 1, "other": 2.0}], path)
    assert not path.exists()
    metrics = [{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0, "eval_loss": 1.5, "reward": 0.1}]
    assert draw_curves(metrics, path)
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("pause", [0.0, 60.0])
def test_curves_are_drawn_while_a_training_goes_on_but_not_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pause: float
) -> None:
    from kernel_smith.training import watch

    drawn: list[Path] = []
    monkeypatch.setattr(watch, "draw_curves", lambda metrics, path: drawn.append(path))
    monkeypatch.setattr(watch, "_PAUSE", pause)
    watching = watch.Watch(Journal(tmp_path), tmp_path, lambda what: None)
    for _ in range(2):
        watching.on_save(None, SimpleNamespace(is_world_process_zero=True), None)
    assert drawn == ([] if pause else [tmp_path / "curves.png"] * 2)
