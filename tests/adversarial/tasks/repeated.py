"""Every block of rows several times over, as heads are repeated for grouped attention."""

import torch

TASK = {
    "family": "adversarial",
    "workloads": {"blocks": {"rows": 64, "columns": 1024, "times": 8}},
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor, times: int) -> torch.Tensor:
        return x.repeat(times, 1)


def get_inputs(rows: int = 64, columns: int = 1024, times: int = 8) -> list[object]:
    return [torch.randn(rows, columns), times]
