"""Log-sum-exp of each row: the normaliser of a softmax, kept by attention and by fused losses."""

import torch

TASK = {
    "family": "reduction",
    "workloads": {
        "wide": {"rows": 32, "columns": 4096},
        "odd": {"rows": 211, "columns": 499},
        "narrow": {"rows": 4096, "columns": 24},
    },
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.logsumexp(x, dim=-1)


def get_inputs(rows: int = 32, columns: int = 4096) -> list[torch.Tensor]:
    # Each row has its own centre and spread; otherwise all results would be nearly the same.
    spread = torch.rand(rows, 1) * 4 + 0.5
    centre = torch.randn(rows, 1) * 5
    return [torch.randn(rows, columns) * spread + centre]
