"""Results of eight bits, in both of their formats."""

import torch

TASK = {"family": "elementwise", "workloads": {"one": {"rows": 128, "columns": 256}}}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return (x * 2).to(torch.float8_e4m3fn), (x * 2).to(torch.float8_e5m2)


def get_inputs(rows: int = 128, columns: int = 256) -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]
