"""A product and a sum per element: as much work as copying the result."""

import torch

TASK = {"family": "adversarial", "workloads": {"flat": {"rows": 512, "columns": 1024}}}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 + 1


def get_inputs(rows: int = 512, columns: int = 1024) -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]
