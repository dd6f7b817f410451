"""Running sum along each row, as in prefix sums, sampling from a distribution and integration."""

import torch

TASK = {
    "family": "scan",
    "workloads": {
        "rows": {"rows": 64, "columns": 2048},
        "odd": {"rows": 7, "columns": 9973},
        "float64": {"rows": 48, "columns": 1024, "dtype": "float64"},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(x, dim=-1)


def get_inputs(rows: int = 64, columns: int = 2048, dtype: str = "float32") -> list[torch.Tensor]:
    return [torch.randn(rows, columns, dtype=getattr(torch, dtype))]
