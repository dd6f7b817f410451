"""Batch normalisation with stored statistics followed by ReLU: what follows each convolution of a
ResNet at inference."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "normalisation",
    "workloads": {
        "features": {"batch": 2, "channels": 64, "height": 28, "width": 28},
        "odd": {"batch": 3, "channels": 37, "height": 27, "width": 31},
        "deep": {"batch": 4, "channels": 384, "height": 7, "width": 7},
    },
}


class Model(torch.nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(1 + 0.3 * torch.randn(channels))
        self.bias = torch.nn.Parameter(0.5 * torch.randn(channels))
        self.register_buffer("mean", torch.randn(channels))
        self.register_buffer("variance", torch.rand(channels) * 3 + 0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normed = F.batch_norm(
            x, self.mean, self.variance, self.weight, self.bias, training=False, eps=1e-5
        )
        return F.relu(normed)


def get_inputs(
    batch: int = 2, channels: int = 64, height: int = 28, width: int = 28
) -> list[torch.Tensor]:
    return [torch.randn(batch, channels, height, width) * 2]


def get_init_inputs(channels: int = 64) -> list[int]:
    return [channels]
