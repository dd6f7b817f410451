"""Add a bias, apply ReLU and square: the feed-forward activation of Nemotron and Primer."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "activation",
    "workloads": {
        "small": {"tokens": 29, "intermediate": 2001, "dtype": "float32"},
        "decode": {"tokens": 128, "intermediate": 16384, "dtype": "bfloat16"},
        "prefill": {"tokens": 8192, "intermediate": 9216, "dtype": "bfloat16"},
        "odd": {"tokens": 2047, "intermediate": 9217, "dtype": "float32"},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def __init__(self, intermediate: int, dtype: str) -> None:
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(intermediate, dtype=getattr(torch, dtype)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(x + self.bias).square()


def get_inputs(
    tokens: int = 128, intermediate: int = 16384, dtype: str = "bfloat16"
) -> list[torch.Tensor]:
    return [torch.randn(tokens, intermediate, dtype=getattr(torch, dtype))]


def get_init_inputs(intermediate: int = 16384, dtype: str = "bfloat16") -> list[object]:
    return [intermediate, dtype]
