"""Gradients that are not finite: the weights never see them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from kernel_smith.errors import BadInput
from kernel_smith.training.config import SftSettings
from kernel_smith.training.sft import train_sft

# As `kernel_smith.training.sound_steps` has it, which imports transformers: every worker that
# collects this file would wait for that.
MOST_IN_A_ROW = 5
STEPS = MOST_IN_A_ROW + 3


@pytest.fixture
def settings(tiny_model: Path, write_rows: Any, sft_rows: Any, tmp_path: Path) -> SftSettings:
    return SftSettings(
        data=write_rows("rows", sft_rows),
        model=tiny_model,
        output=tmp_path / "out",
        steps=STEPS,
        batch=1,
        micro_batch=1,
        sequence_length=128,
        save_every=STEPS,
    )


def spoil(monkeypatch: pytest.MonkeyPatch, steps: range) -> None:
    """In these steps one number of one gradient is lost, as a faulty kernel would."""
    from trl import SFTTrainer

    honest = SFTTrainer.training_step

    def faulty(trainer: Any, model: Any, *arguments: Any, **others: Any) -> Any:
        loss = honest(trainer, model, *arguments, **others)
        if trainer.state.global_step + 1 in steps:
            next(w.grad for w in model.parameters() if w.grad is not None).view(-1)[0] = torch.nan
        return loss

    monkeypatch.setattr(SFTTrainer, "training_step", faulty)


def is_sound(model: Path) -> bool:
    from safetensors.torch import load_file

    return all(bool(weight.isfinite().all()) for weight in load_file(model).values())


@pytest.mark.parametrize("spoilt", [range(2, 4), range(1, MOST_IN_A_ROW + 1)])
def test_a_spoilt_step_is_left_out(
    spoilt: range, settings: SftSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(monkeypatch, spoilt)
    said: list[str] = []
    trained = train_sft(settings, said.append)
    assert trained.steps == STEPS
    assert is_sound(trained.final / "model.safetensors")
    left_out = [line for line in said if "left out" in line]
    assert left_out == [f"step {n}: the gradient is not finite; left out" for n in spoilt]


def test_too_many_in_a_row_end_a_training_whose_checkpoint_is_sound(
    settings: SftSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(monkeypatch, range(2, STEPS + 1))
    with pytest.raises(BadInput, match="6 steps in a row were not finite") as caught:
        train_sft(settings.model_copy(update={"save_every": 1}), print)
    assert "`learning_rate`" in caught.value.hint
    checkpoints = sorted(settings.output.glob("checkpoint-*/*.safetensors"))
    assert checkpoints and all(is_sound(checkpoint) for checkpoint in checkpoints)
