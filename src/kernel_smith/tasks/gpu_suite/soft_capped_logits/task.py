"""Logits of a language model's head, softly capped by a scaled tanh, as in Gemma 2 and Grok."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "fused-matmul",
    "precision": "tf32",
    "workloads": {
        "small": {"tokens": 5, "hidden": 60, "vocabulary": 5003},
        "decode": {"tokens": 64, "hidden": 2304, "vocabulary": 128000, "dtype": "bfloat16"},
        "odd": {"tokens": 101, "hidden": 1155, "vocabulary": 32003},
    },
}


class Model(torch.nn.Module):
    def __init__(self, hidden: int, vocabulary: int, cap: float, dtype: str) -> None:
        super().__init__()
        self.cap = cap
        kind = getattr(torch, dtype)
        self.weight = torch.nn.Parameter(torch.randn(vocabulary, hidden, dtype=kind))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.cap * torch.tanh(F.linear(x, self.weight) / self.cap)


def get_inputs(
    tokens: int = 64, hidden: int = 2304, vocabulary: int = 128000, dtype: str = "float32"
) -> list[torch.Tensor]:
    # Logits of about the size of the cap.
    return [torch.randn(tokens, hidden, dtype=getattr(torch, dtype)) * 25 * hidden**-0.5]


def get_init_inputs(
    hidden: int = 2304, vocabulary: int = 128000, dtype: str = "float32"
) -> list[object]:
    return [hidden, vocabulary, 30.0, dtype]
