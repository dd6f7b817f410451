"""Sums that are rounded to a grid: now and then, which of two steps is the right one hangs on the
last bit."""

import torch

TASK = {"family": "adversarial", "workloads": {"rows": {"rows": 12000, "columns": 64}}}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.round(x.sum(-1) * 512) / 512


def get_inputs(rows: int = 12000, columns: int = 64) -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]
