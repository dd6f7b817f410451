"""A tiny model learns to choose: by SFT, by RL from there, and on after a `kill -9`."""

from __future__ import annotations

import json
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy
import pytest
from forked import forked, may_fork
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_smith.cli.main import main
from kernel_smith.errors import BadInput
from kernel_smith.proposers.chooser.options import LABELS
from kernel_smith.training.choices import weights
from kernel_smith.training.choices.families import deal
from kernel_smith.training.choices.matrix import Matrix
from kernel_smith.training.choices.questions import Question, read_questions, write_questions
from kernel_smith.training.choices.train import by_family, train_chooser
from kernel_smith.training.config import ChooserSettings, Lora

FAMILIES = ("red", "green", "blue", "white", "black", "grey")


def questions() -> list[Question]:
    """Whatever the options are called, B gains most and C a little; A and D gain nothing."""
    rng = random.Random(0)
    worth = {"A": 0.0, "B": 0.6, "C": 0.2, "D": 0.0}
    return [
        Question(
            task=family,
            family=family,
            machine="x86_64",
            program=f"{family} {number}",
            prompt=f"{rng.random():.3f}?",
            rewards=worth,
            children={label: f"{family} {number} {label}" for label in worth},
        )
        for family in FAMILIES
        for number in range(4)
    ]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "questions.jsonl"
    assert write_questions(questions(), path) == 24
    return path


def chooser_settings(data: Path, model: Path, output: Path, **more: Any) -> ChooserSettings:
    given: dict[str, Any] = {"steps": 6, "save_every": 3, "batch": 4, "micro_batch": 4}
    given |= {"learning_rate": 2e-2, "gradient_checkpointing": False, "lora": Lora(rank=4)}
    return ChooserSettings(data=data, model=model, output=output, **(given | more))


def run_command(words: list[str]) -> None:
    sys.argv = words
    main()


def silent(what: str) -> None:
    """Nobody listens."""


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_sft_then_rl_learn_what_pays_in_families_that_they_never_saw(
    data: Path, tiny_model: Path, tmp_path: Path
) -> None:
    said: list[str] = []
    first = chooser_settings(data, tiny_model, tmp_path / "sft")
    sft = train_chooser(first, said.append)
    assert any("20 questions, 4 of other families to validate on" in each for each in said)
    losses = [
        each["eval_loss"]
        for each in lines(tmp_path / "sft" / "metrics.jsonl")
        if "eval_loss" in each
    ]
    assert losses[-1] < losses[0]
    adapter = sft.final / "adapter"
    assert (adapter / "adapter_config.json").is_file()
    assert not (sft.final / "config.json").exists()  # a few MB, not another model
    card = (sft.final / "README.md").read_text()
    assert "--proposer chooser --policy adapter" in card

    # RL goes on with SFT's adapter, which is one of the same model.
    second = chooser_settings(
        data, adapter, tmp_path / "rl", objective="rl", steps=12, save_every=6
    )
    rl = train_chooser(second, said.append)
    assert rl.metrics["best_reward"] > sft.metrics["best_reward"]
    assert rl.metrics["best_reward"] > 0.3  # of 0.6; any letter would be worth 0.2
    assert f"best_reward: {rl.metrics['best_reward']:.4g}" in (rl.final / "README.md").read_text()
    based = json.loads((rl.final / "adapter" / "adapter_config.json").read_text())
    assert based["base_model_name_or_path"] == str(tiny_model)

    with pytest.raises(BadInput, match=r"other settings: entropy was 0\.01, is 1\.0"):
        train_chooser(second.model_copy(update={"entropy": 1.0}), silent)


@may_fork
@pytest.mark.slow
def test_a_training_that_is_killed_ends_where_it_would_have_ended(
    data: Path, tiny_model: Path, tmp_path: Path
) -> None:
    from safetensors.torch import load_file

    file = tmp_path / "settings.toml"
    file.write_text("gradient_checkpointing = false\n[lora]\nrank = 4\n")
    output = tmp_path / "killed"
    command = ["kernel-smith", "train", "chooser", str(data), "--model", str(tiny_model)]
    command += ["-o", str(output)]
    command += ["--config", str(file), "--steps", "9", "--save-every", "3", "--batch", "4"]
    command += ["--micro-batch", "4", "--learning-rate", "2e-2"]
    child = forked(run_command, command)
    while not (output / "checkpoint-3" / "trainer_state.json").exists():
        assert child.is_alive()
        time.sleep(0.01)
    child.kill()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    assert json.loads((output / "training.json").read_text())["state"] == "running"

    told: list[str] = []
    same = chooser_settings(data, tiny_model, output, steps=9)
    assert train_chooser(same, told.append).steps == 9
    assert any("going on from" in each for each in told)
    other = chooser_settings(data, tiny_model, tmp_path / "whole", steps=9)
    assert train_chooser(other, silent).steps == 9
    parts = [path / "final/adapter/adapter_model.safetensors" for path in (output, other.output)]
    mine, whole = map(load_file, parts)
    assert mine.keys() == whole.keys()
    for name, tensor in mine.items():
        numpy.testing.assert_allclose(tensor.numpy(), whole[name].numpy(), rtol=1e-4, atol=1e-6)


def test_the_best_checkpoint_counts_and_not_the_last(
    data: Path, tiny_model: Path, tmp_path: Path
) -> None:
    """In the family that validates the opposite pays, so each step makes it worse there."""
    held = deal(FAMILIES, 6, 0)[0]
    worth = {"A": 0.6, "B": 0.0, "C": 0.0, "D": 0.0}
    turned = [
        each.model_copy(update={"rewards": worth}) if each.family in held else each
        for each in questions()
    ]
    path = tmp_path / "turned.jsonl"
    write_questions(turned, path)
    given = chooser_settings(path, tiny_model, tmp_path / "out", steps=9, objective="rl")
    train_chooser(given, silent)
    losses = {
        each["step"]: each["eval_loss"]
        for each in lines(tmp_path / "out" / "metrics.jsonl")
        if "eval_loss" in each
    }
    best = min(losses, key=lambda step: losses[step])
    assert best < 9
    kept = tmp_path / "out" / f"checkpoint-{best}" / "adapter_model.safetensors"
    final = tmp_path / "out" / "final" / "adapter" / "adapter_model.safetensors"
    assert kept.read_bytes() == final.read_bytes()


@given(st.lists(st.floats(-4, 4), min_size=6, max_size=6), st.booleans())
@settings(max_examples=30, deadline=None)
def test_objectives_are_those_of_the_weights(scores: list[float], more: bool) -> None:
    """Both trainings want the same, whoever is trained."""
    import torch

    from kernel_smith.training.choices.objectives import (
        log_policy,
        lost_reward,
        unlikelihood_of_gains,
    )

    rewards = [0.5, 0.0, 0.1, 0.0, 0.3, 0.2 if more else 0.0]
    state = numpy.array([0, 0, 0, 1, 1, 1])
    matrix = Matrix([], numpy.zeros((6, 0)), numpy.array(rewards), state)
    given_settings, at = weights.Settings(), numpy.array(scores)
    expected, _ = weights.expected_reward(matrix, at, given_settings)
    likelihood, _ = weights.towards_gains(matrix, at, given_settings)

    wide = torch.full((2, len(LABELS)), 9.0)  # what was not judged would be liked best
    judged = torch.zeros_like(wide, dtype=torch.bool)
    worth = torch.zeros_like(wide)
    for row in range(2):
        columns = slice(row, row + 3)
        wide[row, columns] = torch.tensor(scores[3 * row : 3 * row + 3])
        worth[row, columns] = torch.tensor(rewards[3 * row : 3 * row + 3])
        judged[row, columns] = True
    logarithms = log_policy(wide, judged)
    loss = lost_reward(logarithms, worth, judged, given_settings.entropy)
    assert float(loss) == pytest.approx(-expected, abs=1e-5)
    assert float(unlikelihood_of_gains(logarithms, worth)) == pytest.approx(-likelihood, abs=1e-4)


def test_families_learn_or_validate_and_sft_leaves_out_where_nothing_gained(data: Path) -> None:
    asked = questions()
    vain = asked[0].model_copy(update={"rewards": {"A": 0.0, "B": 0.0}, "program": "vain"})
    given_settings = chooser_settings(data, Path("m"), Path("o"))
    learnt, held = by_family([*asked, *asked, vain], given_settings)
    assert not {each.family for each in learnt} & {each.family for each in held}
    assert len({each.program for each in held}) == len(held)
    assert all(each.gains for each in learnt + held)
    both = by_family([*asked, vain], given_settings.model_copy(update={"objective": "rl"}))
    assert vain in [*both[0], *both[1]]
    with pytest.raises(BadInput, match="expected some of two families"):
        by_family([each for each in asked if each.family == "red"], given_settings)


def test_a_line_that_is_no_question_is_named(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    write_questions(questions()[:1], path)
    path.write_text(path.read_text() + '{"task": "x"}\n')
    with pytest.raises(BadInput, match=r"questions\.jsonl:2: no question \(family"):
        read_questions(path)
    with pytest.raises(BadInput, match="cannot be read"):
        read_questions(tmp_path / "none.jsonl")
