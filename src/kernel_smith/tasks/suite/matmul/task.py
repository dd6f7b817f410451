"""The product of two matrices."""

import torch

TASK = {
    "family": "matmul",
    "workloads": {
        "square": {"rows": 192, "inner": 192, "columns": 192},
        "odd": {"rows": 127, "inner": 259, "columns": 95},
        "float64": {"rows": 96, "inner": 120, "columns": 84, "dtype": "float64"},
    },
}


class Model(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


def get_inputs(
    rows: int = 192, inner: int = 192, columns: int = 192, dtype: str = "float32"
) -> list[torch.Tensor]:
    a = torch.randn(rows, inner, dtype=getattr(torch, dtype))
    b = torch.randn(inner, columns, dtype=getattr(torch, dtype))
    return [a, b]
