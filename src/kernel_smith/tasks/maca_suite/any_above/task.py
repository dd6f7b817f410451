"""Whether any element of each row is above a threshold: which tokens hold outliers, so that they
are quantised apart from the others."""

import torch

TASK = {
    "family": "reduction",
    "workloads": {
        "small": {"rows": 51, "columns": 1021},
        "large": {"rows": 4096, "columns": 4096},
        "half": {"rows": 16384, "columns": 4096, "dtype": "bfloat16"},
        "odd": {"rows": 2999, "columns": 5009},
    },
    # Without "large" and "small": all rows would be above the threshold, or none.
    "variants": ["spikes", "sorted", "ties"],
    "library_calls": False,
}


class Model(torch.nn.Module):
    def __init__(self, threshold: float) -> None:
        super().__init__()
        self.threshold = threshold

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x > self.threshold).any(dim=-1)


def get_inputs(rows: int = 4096, columns: int = 4096, dtype: str = "float32") -> list[torch.Tensor]:
    # About half of the rows are spread wide enough to reach the threshold.
    spread = torch.rand(rows, 1) * 2 + 0.7
    return [(torch.randn(rows, columns) * spread).to(getattr(torch, dtype))]


def get_init_inputs() -> list[float]:
    return [6.0]
