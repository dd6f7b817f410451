"""A product of two matrices that must not be left to the library."""

import torch

TASK = {
    "family": "adversarial",
    "workloads": {"square": {"size": 160}},
    "variants": ["large", "small", "spikes"],
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


def get_inputs(size: int = 160) -> list[torch.Tensor]:
    return [torch.randn(size, size), torch.randn(size, size)]
