"""Softmax over the last dimension of a matrix that is too large for any set of it to be kept."""

import torch

TASK = {
    "family": "adversarial",
    "workloads": {"large": {"rows": 1027, "columns": 4096}},
    "variants": ["large", "small", "spikes"],
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=-1)


def get_inputs(rows: int = 1027, columns: int = 4096) -> list[torch.Tensor]:
    return [torch.randn(rows, columns) * 2]
