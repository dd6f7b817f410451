"""Softmax along rows of a matrix that is too large for any set of it to be kept, and of which
neither side is a multiple of anything."""

import torch

TASK = {
    "family": "adversarial",
    "workloads": {"large": {"rows": 8191, "columns": 2051}},
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=-1)


def get_inputs(rows: int = 8191, columns: int = 2051) -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]
