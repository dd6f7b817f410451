"""Logarithm of the sum of exponentials of each row: the normaliser of a softmax in log space, as
for log probabilities, energies and the z-loss of language models."""

import torch

TASK = {
    "family": "reduction",
    "workloads": {
        "small": {"rows": 29, "columns": 1511},
        "large": {"rows": 1024, "columns": 32000},
        "half": {"rows": 2048, "columns": 32000, "dtype": "bfloat16"},
        "odd": {"rows": 1021, "columns": 9973},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.logsumexp(x, dim=-1)


def get_inputs(
    rows: int = 1024, columns: int = 32000, dtype: str = "float32"
) -> list[torch.Tensor]:
    # Each row has its own centre and spread; otherwise all results would be nearly the same.
    spread = torch.rand(rows, 1) * 3 + 0.5
    centre = torch.randn(rows, 1) * 4
    return [(torch.randn(rows, columns) * spread + centre).to(getattr(torch, dtype))]
