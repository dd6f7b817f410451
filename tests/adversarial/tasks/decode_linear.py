"""A linear layer on a single token: reading the weights takes nearly all of the time."""

import torch

TASK = {"family": "adversarial", "workloads": {"decode": {"size": 512}}}


class Model(torch.nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(size, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


def get_inputs(size: int = 512) -> list[torch.Tensor]:
    return [torch.randn(1, size)]


def get_init_inputs(size: int = 512) -> list[int]:
    return [size]
