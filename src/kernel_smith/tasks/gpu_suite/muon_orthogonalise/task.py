"""Five Newton-Schulz steps that make a momentum matrix nearly orthogonal: the heart of the Muon
optimiser, a chain of products with the same matrix."""

import torch

TASK = {
    "family": "optimiser",
    "precision": "tf32",
    "workloads": {
        "small": {"rows": 50, "columns": 93},
        "square": {"rows": 2048, "columns": 2048},
        "wide": {"rows": 1024, "columns": 4096},
        "odd": {"rows": 1001, "columns": 1533},
    },
}


class Model(torch.nn.Module):
    def forward(self, momentum: torch.Tensor) -> torch.Tensor:
        x = momentum / (momentum.square().sum().sqrt() + 1e-7)
        for _ in range(5):
            gram = x @ x.T
            x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
        return x


def get_inputs(rows: int = 2048, columns: int = 2048) -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]
