"""The mean of many squares: the law of large numbers gives the answer without any input."""

import torch

TASK = {"family": "adversarial", "workloads": {"many": {"rows": 2, "columns": 1048576}}}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 1000 + x.square().mean(dim=-1)


def get_inputs(rows: int = 2, columns: int = 1048576) -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]
