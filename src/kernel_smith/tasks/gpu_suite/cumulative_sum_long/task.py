"""Inclusive prefix sums along long rows: cumulative probabilities, offsets and log decays."""

import torch

TASK = {
    "family": "scan",
    "workloads": {
        "small": {"rows": 7, "columns": 4097},
        "sequence": {"rows": 4096, "columns": 8192},
        "vocabulary": {"rows": 64, "columns": 128256},
        "odd": {"rows": 1009, "columns": 5001},
    },
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(x, dim=-1)


def get_inputs(rows: int = 4096, columns: int = 8192) -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]
