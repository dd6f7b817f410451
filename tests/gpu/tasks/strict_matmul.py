"""The product of two matrices in full single precision, with authored kernels alone."""

import torch

TASK = {
    "family": "adversarial",
    "precision": "strict",
    "workloads": {"small": {"size": 128}, "large": {"size": 1024}},
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


def get_inputs(size: int = 1024) -> list[torch.Tensor]:
    return [torch.randn(size, size), torch.randn(size, size)]
