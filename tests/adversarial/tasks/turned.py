"""A function of a matrix that lies in memory by columns, as its result does."""

import torch

TASK = {
    "family": "adversarial",
    "workloads": {"even": {"rows": 256, "columns": 384}, "odd": {"rows": 131, "columns": 257}},
    "variants": ["large", "small", "shifted", "spikes", "sorted", "ties", "strided"],
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / (1 + x.abs())


def get_inputs(rows: int = 256, columns: int = 384) -> list[torch.Tensor]:
    return [torch.randn(columns, rows).t()]
