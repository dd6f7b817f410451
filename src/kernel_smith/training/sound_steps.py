"""No gradient that is not a number ever reaches the weights.

One such step would end a training silently: all weights are lost, the loss reads 0 from then on,
and the checkpoints that follow are worthless. A step without a sound gradient changes nothing, and
is told; too many in a row end the training, with its last checkpoint intact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from transformers import TrainerCallback

from kernel_smith.errors import BadInput

MOST_IN_A_ROW = 5


class SoundSteps(TrainerCallback):  # type: ignore[misc]
    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._in_a_row = 0

    def on_pre_optimizer_step(
        self, args: Any, state: Any, control: Any, *, model: Any, optimizer: Any, **kwargs: Any
    ) -> None:
        import torch

        gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
        if not gradients or torch.nn.utils.get_total_norm(gradients).isfinite():
            self._in_a_row = 0
            return
        optimizer.zero_grad()
        self._in_a_row += 1
        if self._in_a_row > MOST_IN_A_ROW:
            raise BadInput(
                f"the gradients of {self._in_a_row} steps in a row were not finite",
                hint="lower `learning_rate`, or set `bf16 = false`; these begin a new --output",
            )
        self._report(f"step {state.global_step + 1}: the gradient is not finite; left out")


def avoid_unsound_attention() -> None:
    """cuDNN's attention returns gradients that are not finite for some lengths, on Hopper.

    It does so since torch 2.11, for models with large biases such as Qwen2.5's, where sequences
    are padded: https://github.com/pytorch/pytorch/issues/196678. Other kernels are as fast.
    """
    import torch

    torch.backends.cuda.enable_cudnn_sdp(False)
