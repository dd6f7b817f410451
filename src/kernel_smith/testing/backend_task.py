"""The task that backends are tried on: simple enough for any dialect, and right in one way only."""

import torch

TASK = {
    "family": "elementwise",
    "workloads": {
        "small": {"rows": 33, "columns": 65},
        "large": {"rows": 256, "columns": 1024},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return 3.0 * x + y


def get_inputs(rows: int = 33, columns: int = 65) -> list[torch.Tensor]:
    return [torch.randn(rows, columns), torch.randn(rows, columns)]
