"""Many products of small matrices at once, as in attention heads, capsules and per-sample
transformations."""

import torch

TASK = {
    "family": "matmul",
    "workloads": {
        "heads": {"batch": 64, "rows": 32, "inner": 32, "columns": 32},
        "odd": {"batch": 53, "rows": 19, "inner": 37, "columns": 29},
        "tiny": {"batch": 2048, "rows": 6, "inner": 6, "columns": 6},
    },
}


class Model(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.bmm(a, b)


def get_inputs(
    batch: int = 64, rows: int = 32, inner: int = 32, columns: int = 32
) -> list[torch.Tensor]:
    return [torch.randn(batch, rows, inner), torch.randn(batch, inner, columns)]
