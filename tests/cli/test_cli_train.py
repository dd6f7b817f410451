"""`kernel-smith train`: options become settings, results are told, and errors have remedies."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from kernel_smith.cli import train
from kernel_smith.errors import BadInput
from kernel_smith.training import rl, sft
from kernel_smith.training.config import Lora, RlSettings, SftSettings
from kernel_smith.training.running import Trained


def run(*arguments: object) -> Result:
    return CliRunner().invoke(train.app, list(map(str, arguments)))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """Nothing is trained; what a training would have been given is remembered."""
    seen: list[Any] = []

    def trained(settings: Any, *others: Any, again: str) -> Trained:
        seen.append(settings)
        seen.append(again)
        (tmp_path / "final" / "adapter").mkdir(parents=True)
        if settings.merge:
            (tmp_path / "final" / "config.json").write_text("{}")
        return Trained(tmp_path, tmp_path / "final", settings.steps, {"loss": 0.5})

    monkeypatch.setattr(sft, "train_sft", trained)
    monkeypatch.setattr(rl, "train_rl", trained)
    return seen


def test_options_win_over_the_file(asked: list[Any], tmp_path: Path) -> None:
    config = tmp_path / "sft.toml"
    config.write_text("steps = 3\nbatch = 6\n[lora]\nalpha = 5.0\n")
    done = run(
        "sft", "data", "--model", "m", "-o", "o", "--config", config, "--steps", 9, "--rank", 4
    )
    assert done.exit_code == 0, done.output
    settings = asked[0]
    assert isinstance(settings, SftSettings)
    assert (settings.data, settings.model, settings.output) == (Path("data"), Path("m"), Path("o"))
    assert (settings.steps, settings.batch) == (9, 6)
    assert settings.lora == Lora(rank=4, alpha=5.0)


def test_rl_is_told_everything_and_given_an_engine(asked: list[Any]) -> None:
    done = run(
        *("rl", "data", "--model", "m", "-o", "o", "--engine", "simulated:2:0", "--full"),
        *("--samples", 4, "--entries", 3, "--advantage", "leave-one-out", "--max-new-tokens", 7),
    )
    assert done.exit_code == 0, done.output
    settings = asked[0]
    assert isinstance(settings, RlSettings)
    assert (settings.samples, settings.entries, settings.max_new_tokens) == (4, 3, 7)
    assert settings.advantage == "leave-one-out"
    assert settings.lora is False


def test_the_command_that_goes_on_is_this_one(
    asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/kernel-smith", "train", "sft", "my data"])
    run("sft", "data", "--model", "m", "-o", "o")
    assert asked[1] == "kernel-smith train sft 'my data'"


def test_the_end_says_how_to_serve_and_use_the_model(
    asked: list[Any], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = {"data": Path("d"), "model": Path("m"), "output": Path("o"), "json": False}
    train.sft(**arguments, quiet=True)  # type: ignore[arg-type]
    out = capsys.readouterr().out
    assert f"vllm serve {tmp_path / 'final'} --served-model-name mine" in out
    assert "kernel-smith optimize TASK --model mine@http://127.0.0.1:8000/v1" in out
    assert "train merge" not in out


def test_an_adapter_alone_is_to_be_merged_first(
    asked: list[Any], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    config = tmp_path / "sft.toml"
    config.write_text("merge = false\n")
    train.sft(Path("d"), model=Path("m"), output=Path("o"), config=config, quiet=True)
    assert f"kernel-smith train merge {tmp_path / 'final' / 'adapter'}" in capsys.readouterr().out


def test_json_is_one_object(
    asked: list[Any], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    train.sft(Path("d"), model=Path("m"), output=Path("o"), steps=3, json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["model"] == str(tmp_path / "final")
    assert told["adapter"] == str(tmp_path / "final" / "adapter")
    assert (told["steps"], told["metrics"]) == (3, {"loss": 0.5})


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["sft", "data", "-o", "o"], "`model` is missing"),
        (["rl", "data", "--model", "m"], "`output` is missing"),
        (["sft", "nowhere", "--model", "m", "-o", "o"], "there is no data in nowhere"),
        (["rl", "d", "--model", "m", "-o", "o", "--advantage", "best"], "`advantage`"),
        (["merge", "nowhere", "-o", "o"], "nowhere is no adapter"),
    ],
)
def test_bad_usage_is_refused(
    arguments: list[str], complaint: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*arguments)
    assert isinstance(done.exception, BadInput)
    assert complaint in done.exception.what
    assert not (tmp_path / "o").exists()
