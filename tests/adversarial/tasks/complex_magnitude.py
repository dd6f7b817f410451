"""A complex result."""

import torch

TASK = {"family": "elementwise", "workloads": {"one": {"rows": 100, "columns": 200}}}


class Model(torch.nn.Module):
    def forward(self, z: torch.Tensor) -> torch.Tensor:
        return z * z.abs()


def get_inputs(rows: int = 100, columns: int = 200) -> list[torch.Tensor]:
    return [torch.randn(rows, columns, dtype=torch.complex64)]
