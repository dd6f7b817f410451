"""The loss of every token from its logits over a large vocabulary, in single precision: the last
step of a language model's forward pass in training, and its largest tensor."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "loss",
    "workloads": {
        "small": {"tokens": 9, "vocabulary": 32003},
        "llama2": {"tokens": 8192, "vocabulary": 32000, "dtype": "bfloat16"},
        "llama3": {"tokens": 2048, "vocabulary": 128256, "dtype": "bfloat16"},
        "odd": {"tokens": 1023, "vocabulary": 50257},
    },
}


class Model(torch.nn.Module):
    def forward(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        return F.cross_entropy(wide, targets, reduction="none")


def get_inputs(
    tokens: int = 8192, vocabulary: int = 32000, dtype: str = "float32"
) -> list[torch.Tensor]:
    logits = torch.randn(tokens, vocabulary, dtype=getattr(torch, dtype)) * 4
    return [logits, torch.randint(vocabulary, (tokens,))]
