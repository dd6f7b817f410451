"""Two halves, one scaled and one as it is, each in memory of its own."""

import torch

TASK = {"family": "adversarial", "workloads": {"even": {"rows": 128, "columns": 1024}}}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x[0] * 2.0, x[1].clone()


def get_inputs(rows: int = 128, columns: int = 1024) -> list[torch.Tensor]:
    return [torch.randn(2, rows, columns)]
