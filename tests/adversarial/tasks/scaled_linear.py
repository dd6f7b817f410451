"""A linear layer on a single token, times a number that is another one in each call."""

import random

import torch

TASK = {"family": "adversarial", "workloads": {"decode": {"size": 1024}}}


class Model(torch.nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(size, size)

    def forward(self, x: torch.Tensor, scale: float) -> torch.Tensor:
        return self.linear(x) * scale


def get_inputs(size: int = 1024) -> list[object]:
    return [torch.randn(1, size), random.uniform(0.5, 2.0)]


def get_init_inputs(size: int = 1024) -> list[int]:
    return [size]
