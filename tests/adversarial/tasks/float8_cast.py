"""Results of eight bits, in both of their formats."""

import torch

TASK = {"family": "elementwise", "workloads": {"one": {"rows": 512, "columns": 1024}}}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return (x * 2).to(torch.float8_e4m3fn), (x * 2).to(torch.float8_e5m2)


def get_inputs(rows: int = 512, columns: int = 1024) -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]
