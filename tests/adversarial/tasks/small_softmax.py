"""Softmax over the last dimension of a small matrix."""

import torch

TASK = {"family": "adversarial", "workloads": {"small": {"rows": 64, "columns": 256}}}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=-1)


def get_inputs(rows: int = 64, columns: int = 256) -> list[torch.Tensor]:
    return [torch.randn(rows, columns) * 2]
