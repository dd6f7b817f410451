"""The Gram matrix of the columns of a tall, thin matrix, as in least squares, covariance estimation
and second-order optimisers."""

import torch

TASK = {
    "family": "matmul",
    "workloads": {
        "tall": {"rows": 8192, "columns": 24},
        "odd": {"rows": 3001, "columns": 53},
    },
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.T @ x


def get_inputs(rows: int = 8192, columns: int = 24) -> list[torch.Tensor]:
    # Mixed columns are correlated, so that the entries off the diagonal matter.
    mixing = torch.randn(columns, columns) / columns**0.5
    return [torch.randn(rows, columns) @ mixing]
