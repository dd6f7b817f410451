"""A linear layer whose output is scaled per channel and added to the residual stream, as at the end
of each block of a vision transformer with LayerScale."""

import torch

TASK = {
    "family": "fused-matmul",
    "workloads": {
        "block": {"tokens": 64, "features": 256, "hidden": 192},
        "odd": {"tokens": 49, "features": 201, "hidden": 133},
    },
}


class Model(torch.nn.Module):
    def __init__(self, features: int, hidden: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(features, hidden)
        self.scale = torch.nn.Parameter(torch.randn(hidden))

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        return residual + self.scale * self.linear(x)


def get_inputs(tokens: int = 64, features: int = 256, hidden: int = 192) -> list[torch.Tensor]:
    return [torch.randn(tokens, features), torch.randn(tokens, hidden)]


def get_init_inputs(features: int = 256, hidden: int = 192) -> list[int]:
    return [features, hidden]
