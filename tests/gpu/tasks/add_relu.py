"""The sum of two tensors, negative results set to zero; library calls are allowed."""

import torch

TASK = {
    "family": "adversarial",
    "workloads": {"small": {"count": 50_001}, "large": {"count": 16_777_216}},
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + y)


def get_inputs(count: int = 16_777_216) -> list[torch.Tensor]:
    return [torch.randn(count), torch.randn(count)]
