"""Sum of each row: the normaliser of weights, or the energy of a spectrum."""

import torch

TASK = {
    "family": "reduction",
    "workloads": {
        "small": {"rows": 37, "columns": 1003},
        "large": {"rows": 4096, "columns": 4096},
        "half": {"rows": 8192, "columns": 8192, "dtype": "bfloat16"},
        "odd": {"rows": 2039, "columns": 5003},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum(dim=-1)


def get_inputs(rows: int = 4096, columns: int = 4096, dtype: str = "float32") -> list[torch.Tensor]:
    # Each row has its own centre and spread; otherwise all results would be nearly the same.
    spread = torch.rand(rows, 1) * 2 + 0.5
    centre = torch.randn(rows, 1)
    return [(torch.randn(rows, columns) * spread + centre).to(getattr(torch, dtype))]
