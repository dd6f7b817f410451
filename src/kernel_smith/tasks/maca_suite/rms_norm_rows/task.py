"""Normalisation of rows by their root mean square, with a weight: twice per layer of Llama, Qwen
and most other language models."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "norm",
    "workloads": {
        "small": {"rows": 21, "columns": 443},
        "large": {"rows": 4096, "columns": 4096},
        "half": {"rows": 8192, "columns": 5120, "dtype": "bfloat16"},
        "odd": {"rows": 1979, "columns": 2053},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def __init__(self, columns: int, dtype: str) -> None:
        super().__init__()
        kind = getattr(torch, dtype)
        self.weight = torch.nn.Parameter(1 + 0.3 * torch.randn(columns, dtype=kind))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight, eps=1e-6)


def get_inputs(rows: int = 4096, columns: int = 4096, dtype: str = "float32") -> list[torch.Tensor]:
    return [torch.randn(rows, columns, dtype=getattr(torch, dtype)) * 1.5]


def get_init_inputs(columns: int = 4096, dtype: str = "float32") -> list[object]:
    return [columns, dtype]
