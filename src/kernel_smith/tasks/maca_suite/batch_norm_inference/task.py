"""Batch normalisation with stored mean and variance, as after each convolution of a ResNet at
inference."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "norm",
    "workloads": {
        "small": {"batch": 2, "channels": 13, "height": 19, "width": 23},
        "large": {"batch": 32, "channels": 64, "height": 112, "width": 112},
        "half": {"batch": 64, "channels": 256, "height": 56, "width": 56, "dtype": "float16"},
        "odd": {"batch": 3, "channels": 67, "height": 61, "width": 83},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def __init__(self, channels: int, dtype: str) -> None:
        super().__init__()
        kind = getattr(torch, dtype)
        self.weight = torch.nn.Parameter(1 + 0.3 * torch.randn(channels, dtype=kind))
        self.bias = torch.nn.Parameter(torch.randn(channels, dtype=kind))
        self.register_buffer("mean", torch.randn(channels, dtype=kind))
        self.register_buffer("variance", 0.2 + 3 * torch.rand(channels, dtype=kind))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.batch_norm(x, self.mean, self.variance, self.weight, self.bias, eps=1e-5)


def get_inputs(
    batch: int = 32, channels: int = 64, height: int = 112, width: int = 112, dtype: str = "float32"
) -> list[torch.Tensor]:
    shape = (batch, channels, height, width)
    return [torch.randn(shape, dtype=getattr(torch, dtype)) * 2]


def get_init_inputs(channels: int = 64, dtype: str = "float32") -> list[object]:
    return [channels, dtype]
