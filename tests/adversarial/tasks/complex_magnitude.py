"""A complex result."""

import torch

TASK = {"family": "elementwise", "workloads": {"one": {"rows": 400, "columns": 500}}}


class Model(torch.nn.Module):
    def forward(self, z: torch.Tensor) -> torch.Tensor:
        return z * z.abs()


def get_inputs(rows: int = 400, columns: int = 500) -> list[torch.Tensor]:
    return [torch.randn(rows, columns, dtype=torch.complex64)]
