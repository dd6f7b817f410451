"""Layer normalisation of rows with weight and bias, as before the attention and the feed-forward
part of every layer of GPT and BERT."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "norm",
    "workloads": {
        "small": {"rows": 19, "columns": 397},
        "large": {"rows": 8192, "columns": 2048},
        "half": {"rows": 16384, "columns": 4096, "dtype": "bfloat16"},
        "odd": {"rows": 2053, "columns": 1531},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def __init__(self, columns: int, dtype: str) -> None:
        super().__init__()
        kind = getattr(torch, dtype)
        self.weight = torch.nn.Parameter(1 + 0.3 * torch.randn(columns, dtype=kind))
        self.bias = torch.nn.Parameter(torch.randn(columns, dtype=kind))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, eps=1e-5)


def get_inputs(rows: int = 8192, columns: int = 2048, dtype: str = "float32") -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    return [torch.randn(rows, columns, dtype=kind) * 2 + torch.randn(rows, 1, dtype=kind)]


def get_init_inputs(columns: int = 2048, dtype: str = "float32") -> list[object]:
    return [columns, dtype]
