"""GRPO whose rewards come from the judge, and whose advantages may leave the answer itself out.

Answers go to the judge as soon as they are decoded. While it works, the trainer writes further
answers and computes what it needs to know of them; then it waits for the rewards of all.
"""

from __future__ import annotations

import math
import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

import torch
from trl import GRPOTrainer

from kernel_smith.training.advantages import leave_one_out
from kernel_smith.training.answers import text_of
from kernel_smith.training.environment import Environment
from kernel_smith.training.merged import merged

_COMPLETIONS = 3  # among what the trainer's `_generate` returns


class JudgedTrainer(GRPOTrainer):  # type: ignore[misc]
    def __init__(
        self,
        *,
        environment: Environment,
        advantage: Literal["group", "leave-one-out"],
        generate_at_once: int | None,
        **others: Any,
    ) -> None:
        self._environment = environment
        self._advantage = advantage
        self._at_once = generate_at_once
        self._rows: list[dict[str, Any]] = []
        self._scores: list[float | None] = []
        self._writing_seconds = 0.0
        super().__init__(reward_funcs=[self.judge], **others)

    def judge(self, completions: list[Any], log_metric: Any, **others: Any) -> list[float | None]:
        """The reward function, as the trainer calls it; the answers are with the judge already."""
        begin = time.monotonic()
        rewards, shares = self._environment.finish(self.state.global_step)
        waited = time.monotonic() - begin
        for name, share in shares.items():
            log_metric(name, share)
        log_metric("seconds/writing", self._writing_seconds)
        log_metric("seconds/waiting_for_the_judge", waited)
        return rewards

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        self._rows = inputs
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        if self._advantage == "leave-one-out":
            advantages = leave_one_out(self._scores, self.num_generations)
            start = self.accelerator.process_index * len(inputs)
            output["advantages"] = torch.tensor(
                advantages[start : start + len(inputs)],
                dtype=output["advantages"].dtype,
                device=output["advantages"].device,
            )
        return output

    def _generate(self, prompts: list[Any]) -> tuple[Any, ...]:
        begin = time.monotonic()
        size = self._at_once or len(prompts)
        parts = []
        for start in range(0, len(prompts), size):
            with self._merged():
                part = super()._generate(prompts[start : start + size])
            texts = [text_of(completion) for completion in part[_COMPLETIONS]]
            self._environment.begin(self._rows[start : start + size], texts)
            parts.append(part)
        self._writing_seconds = time.monotonic() - begin
        return _joined(parts)

    def _merged(self) -> AbstractContextManager[None]:
        if self.is_fsdp_enabled or self.is_deepspeed_enabled:  # no process has all of the weights
            return nullcontext()
        return merged(self.accelerator.unwrap_model(self.model))

    def _calculate_rewards(self, *arguments: Any) -> Any:
        """Rewards of all processes; the trainer knows unknown ones as NaN."""
        rewards = super()._calculate_rewards(*arguments)
        self._scores = [None if math.isnan(one) else one for one in rewards[:, 0].tolist()]
        return rewards


def _joined(parts: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Lists are chained. What is not a list says something of all parts alike."""
    if len(parts) == 1:
        return parts[0]
    return tuple(
        [item for piece in column for item in piece] if isinstance(column[0], list) else column[0]
        for column in zip(*parts, strict=True)
    )
