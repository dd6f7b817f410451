"""Softmax over the last dimension, for two shapes."""

import torch

TASK = {
    "family": "adversarial",
    "workloads": {"short": {"rows": 32, "columns": 64}, "long": {"rows": 16, "columns": 512}},
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=-1)


def get_inputs(rows: int = 32, columns: int = 64) -> list[torch.Tensor]:
    return [torch.randn(rows, columns) * 2]
