"""A result, and its first rows as a second one."""

import torch

TASK = {"family": "adversarial", "workloads": {"rows": {"rows": 128, "columns": 512}}}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = torch.relu(x) * 2
        return y, y[1:5], y


def get_inputs(rows: int = 128, columns: int = 512) -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]
