"""The largest value of each row: global max pooling, or the first step of a stable softmax."""

import torch

TASK = {
    "family": "reduction",
    "workloads": {
        "small": {"rows": 41, "columns": 1019},
        "large": {"rows": 4096, "columns": 8192},
        "half": {"rows": 8192, "columns": 8192, "dtype": "bfloat16"},
        "odd": {"rows": 3001, "columns": 6007},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.amax(dim=-1)


def get_inputs(rows: int = 4096, columns: int = 8192, dtype: str = "float32") -> list[torch.Tensor]:
    # Each row has its own centre and spread; otherwise all results would be nearly the same.
    spread = torch.rand(rows, 1) * 2 + 0.5
    centre = torch.randn(rows, 1)
    return [(torch.randn(rows, columns) * spread + centre).to(getattr(torch, dtype))]
