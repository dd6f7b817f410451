"""A product and a sum per element of a tensor whose last elements no 32-bit offset reaches."""

import torch

TASK = {
    "family": "adversarial",
    "workloads": {
        "small": {"rows": 61, "columns": 1003},
        "huge": {"rows": 524_296, "columns": 4096},
    },
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x * 0.5 + 1)


def get_inputs(rows: int = 524_296, columns: int = 4096) -> list[torch.Tensor]:
    return [torch.randn(rows, columns, dtype=torch.float16)]
