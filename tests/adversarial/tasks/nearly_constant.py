"""The mean of many squares: the law of large numbers gives the answer without any input."""

import torch

TASK = {"family": "adversarial", "workloads": {"many": {"rows": 2, "columns": 131072}}}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 1000 + x.square().mean(dim=-1)


def get_inputs(rows: int = 2, columns: int = 131072) -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]
