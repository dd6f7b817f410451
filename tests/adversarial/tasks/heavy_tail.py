"""Exponentials of wide-spread numbers: a few outputs are so large that the rest hardly counts."""

import torch

TASK = {"family": "adversarial", "workloads": {"wide": {"size": 16384}}, "variants": ["small"]}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.exp(x)


def get_inputs(size: int = 16384) -> list[torch.Tensor]:
    return [torch.randn(size) * 5]
