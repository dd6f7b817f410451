"""Leaky ReLU with a slope of 0.1 below zero: the activation after each convolution of the Darknet
family of detectors, and of many discriminators."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "activation",
    "workloads": {
        "small": {"batch": 1, "channels": 7, "height": 41, "width": 53},
        "large": {"batch": 16, "channels": 64, "height": 160, "width": 160},
        "half": {"batch": 32, "channels": 128, "height": 80, "width": 80, "dtype": "float16"},
        "odd": {"batch": 3, "channels": 37, "height": 151, "width": 203},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.leaky_relu(x, 0.1)


def get_inputs(
    batch: int = 16, channels: int = 64, height: int = 160, width: int = 160, dtype: str = "float32"
) -> list[torch.Tensor]:
    return [torch.randn(batch, channels, height, width, dtype=getattr(torch, dtype)) * 2]
