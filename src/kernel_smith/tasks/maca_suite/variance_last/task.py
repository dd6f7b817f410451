"""Unbiased variance of each row: the statistics of a feature, as monitored in training and used in
normalisation."""

import torch

TASK = {
    "family": "reduction",
    "workloads": {
        "small": {"rows": 39, "columns": 1009},
        "large": {"rows": 8192, "columns": 4096},
        "half": {"rows": 16384, "columns": 4096, "dtype": "bfloat16"},
        "odd": {"rows": 3067, "columns": 4093},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.var(dim=-1)


def get_inputs(rows: int = 8192, columns: int = 4096, dtype: str = "float32") -> list[torch.Tensor]:
    # Each row has its own centre and spread; otherwise all results would be nearly the same.
    spread = torch.rand(rows, 1) * 2 + 0.5
    centre = torch.randn(rows, 1)
    return [(torch.randn(rows, columns) * spread + centre).to(getattr(torch, dtype))]
