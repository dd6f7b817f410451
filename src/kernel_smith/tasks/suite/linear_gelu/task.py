"""A linear layer with bias followed by the exact GELU: the first half of a transformer's MLP."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "fused-matmul",
    "workloads": {
        "mlp": {"tokens": 48, "features": 192, "hidden": 384},
        "odd": {"tokens": 33, "features": 173, "hidden": 311},
        "decode": {"tokens": 1, "features": 512, "hidden": 1024},
    },
}


class Model(torch.nn.Module):
    def __init__(self, features: int, hidden: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(features, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(self.linear(x))


def get_inputs(tokens: int = 48, features: int = 192, hidden: int = 384) -> list[torch.Tensor]:
    return [torch.randn(tokens, features) * 2]


def get_init_inputs(features: int = 192, hidden: int = 384) -> list[int]:
    return [features, hidden]
