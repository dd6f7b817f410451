"""Softmax along rows in single precision, with authored kernels alone."""

import torch

TASK = {
    "family": "adversarial",
    "workloads": {
        "small": {"rows": 60, "columns": 1000},
        "large": {"rows": 4096, "columns": 2048},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=-1)


def get_inputs(rows: int = 4096, columns: int = 2048) -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]
