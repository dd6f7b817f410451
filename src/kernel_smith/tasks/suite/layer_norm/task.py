"""Layer normalisation over the last dimension with weight and bias, as before every block of a
transformer."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "normalisation",
    "workloads": {
        "hidden": {"rows": 128, "columns": 768},
        "odd": {"rows": 131, "columns": 999},
        "narrow": {"rows": 2048, "columns": 48},
    },
}


class Model(torch.nn.Module):
    def __init__(self, columns: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(1 + 0.3 * torch.randn(columns))
        self.bias = torch.nn.Parameter(0.3 * torch.randn(columns))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, eps=1e-5)


def get_inputs(rows: int = 128, columns: int = 768) -> list[torch.Tensor]:
    return [torch.randn(rows, columns) * 2 + torch.randn(rows, 1)]


def get_init_inputs(columns: int = 768) -> list[int]:
    return [columns]
