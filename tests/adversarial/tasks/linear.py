"""A linear layer: a task with parameters."""

import torch

TASK = {"family": "adversarial", "workloads": {"layer": {"rows": 32, "size": 64}}}


class Model(torch.nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(size, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


def get_inputs(rows: int = 32, size: int = 64) -> list[torch.Tensor]:
    return [torch.randn(rows, size)]


def get_init_inputs(size: int = 64) -> list[int]:
    return [size]
