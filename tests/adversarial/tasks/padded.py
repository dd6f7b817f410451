"""Rows made wider by zeros: most of the result is the same in every call."""

import torch

TASK = {"family": "adversarial", "workloads": {"wide": {"rows": 512, "columns": 64}}}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.pad(x, (0, 448))


def get_inputs(rows: int = 512, columns: int = 64) -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]
