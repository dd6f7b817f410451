"""A bias per column and then GELU in its tanh form, in one pass: between the two linear layers of
a GPT block, as the fused kernels of Megatron have it."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "activation",
    "workloads": {
        "small": {"rows": 23, "columns": 777},
        "large": {"rows": 4096, "columns": 4096},
        "half": {"rows": 4096, "columns": 16384, "dtype": "bfloat16"},
        "odd": {"rows": 1021, "columns": 4099},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def __init__(self, columns: int, dtype: str) -> None:
        super().__init__()
        kind = getattr(torch, dtype)
        self.bias = torch.nn.Parameter(torch.randn(columns, dtype=kind))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(x + self.bias, approximate="tanh")


def get_inputs(rows: int = 4096, columns: int = 4096, dtype: str = "float32") -> list[torch.Tensor]:
    return [torch.randn(rows, columns, dtype=getattr(torch, dtype))]


def get_init_inputs(columns: int = 4096, dtype: str = "float32") -> list[object]:
    return [columns, dtype]
