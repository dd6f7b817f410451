"""GELU in its tanh form, the activation between the two linear layers of a GPT block."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "elementwise",
    "workloads": {
        "mlp": {"rows": 128, "columns": 1024},
        "odd": {"rows": 37, "columns": 1531},
        "bfloat16": {"rows": 96, "columns": 768, "dtype": "bfloat16"},
    },
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(x, approximate="tanh")


def get_inputs(rows: int = 128, columns: int = 1024, dtype: str = "float32") -> list[torch.Tensor]:
    return [torch.randn(rows, columns, dtype=getattr(torch, dtype)) * 1.5]
