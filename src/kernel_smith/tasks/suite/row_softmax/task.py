"""Softmax over the last dimension, as in classifiers and samplers."""

import torch

TASK = {
    "family": "softmax",
    "workloads": {
        "wide": {"rows": 32, "columns": 4096},
        "odd": {"rows": 257, "columns": 333},
        "float16": {"rows": 96, "columns": 512, "dtype": "float16"},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=-1)


def get_inputs(rows: int = 32, columns: int = 4096, dtype: str = "float32") -> list[torch.Tensor]:
    return [torch.randn(rows, columns, dtype=getattr(torch, dtype)) * 2]
