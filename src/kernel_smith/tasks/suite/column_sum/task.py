"""Sum over the rows of a matrix: the gradient of a linear layer's bias."""

import torch

TASK = {
    "family": "reduction",
    "workloads": {
        "gradient": {"rows": 2048, "columns": 128},
        "odd": {"rows": 2003, "columns": 117},
        "tall": {"rows": 16384, "columns": 12},
    },
}


class Model(torch.nn.Module):
    def forward(self, gradient: torch.Tensor) -> torch.Tensor:
        return gradient.sum(dim=0)


def get_inputs(rows: int = 2048, columns: int = 128) -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]
