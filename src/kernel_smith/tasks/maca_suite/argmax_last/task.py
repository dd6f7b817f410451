"""Where the largest value of each row is, the first among equals: greedy decoding, or the predicted
class of each sample."""

import torch

TASK = {
    "family": "reduction",
    "workloads": {
        "small": {"rows": 31, "columns": 1511},
        "large": {"rows": 512, "columns": 32000},
        "half": {"rows": 1024, "columns": 50257, "dtype": "bfloat16"},
        "odd": {"rows": 509, "columns": 10007},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.argmax(dim=-1)


def get_inputs(rows: int = 512, columns: int = 32000, dtype: str = "float32") -> list[torch.Tensor]:
    return [(torch.randn(rows, columns) * 3).to(getattr(torch, dtype))]
