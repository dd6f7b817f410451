"""A trainer for a model whose answer is one letter: one pass, and the worth of each letter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import EvalPrediction, Trainer

from kernel_smith.proposers.chooser.options import LABELS
from kernel_smith.training.choices.objectives import (
    log_policy,
    lost_reward,
    unlikelihood_of_gains,
)
from kernel_smith.training.choices.questions import Question
from kernel_smith.training.choices.reading import Letters, letter_scores
from kernel_smith.training.config import ChooserSettings

Row = dict[str, Any]


def row_of(question: Question, tokens: list[int]) -> Row:
    """Return what a step needs of a question."""
    rewards = [question.rewards.get(label) for label in LABELS]
    return {
        "tokens": tokens,
        "rewards": [reward or 0.0 for reward in rewards],
        "judged": [reward is not None for reward in rewards],
    }


class ChooserTrainer(Trainer):  # type: ignore[misc]
    """Reports `eval_reward` beside the loss: the logarithm of the gain to be expected."""

    def __init__(self, settings: ChooserSettings, letters: Letters, **more: Any) -> None:
        super().__init__(data_collator=self._together, compute_metrics=_metrics, **more)
        self.model_accepts_loss_kwargs = False  # the loss is a mean over the questions at hand
        self._settings = settings
        self._letters = letters

    def train(self, *arguments: Any, **more: Any) -> Any:
        """Train, and say in the end how the checkpoint does that counts: `best_loss` and so on."""
        done = super().train(*arguments, **more)
        if self.state.global_step >= self.args.max_steps:
            self.evaluate(metric_key_prefix="best")
        return done

    def compute_loss(self, model: Any, inputs: Row, return_outputs: bool = False, **_: Any) -> Any:
        scores = letter_scores(model, inputs, self._letters.ids)
        logarithms = log_policy(scores, inputs["judged"])
        if self._settings.objective == "sft":
            loss = unlikelihood_of_gains(logarithms, inputs["rewards"])
        else:
            entropy = self._settings.entropy
            loss = lost_reward(logarithms, inputs["rewards"], inputs["judged"], entropy)
        return (loss, logarithms) if return_outputs else loss

    def prediction_step(self, model: Any, inputs: Row, *_: Any, **__: Any) -> tuple[Any, Any, Any]:
        inputs = self._prepare_inputs(inputs)
        with torch.no_grad():
            loss, logarithms = self.compute_loss(model, inputs, return_outputs=True)
        return loss, logarithms.exp() * inputs["judged"], inputs["rewards"]

    def _together(self, rows: Sequence[Row]) -> dict[str, Any]:
        return self._letters.batch([row["tokens"] for row in rows]) | {
            "rewards": torch.tensor([row["rewards"] for row in rows]),
            "judged": torch.tensor([row["judged"] for row in rows]),
        }


def _metrics(seen: EvalPrediction) -> dict[str, float]:
    return {"reward": float((seen.predictions * seen.label_ids).sum(-1).mean())}
