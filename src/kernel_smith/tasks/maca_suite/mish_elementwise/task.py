"""Mish, x tanh(log(1 + exp(x))): the activation after each convolution of the YOLOv4 backbone."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "activation",
    "workloads": {
        "small": {"batch": 2, "channels": 5, "height": 37, "width": 47},
        "large": {"batch": 8, "channels": 64, "height": 208, "width": 208},
        "half": {"batch": 16, "channels": 128, "height": 152, "width": 152, "dtype": "float16"},
        "odd": {"batch": 3, "channels": 61, "height": 101, "width": 149},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.mish(x)


def get_inputs(
    batch: int = 8, channels: int = 64, height: int = 208, width: int = 208, dtype: str = "float32"
) -> list[torch.Tensor]:
    return [torch.randn(batch, channels, height, width, dtype=getattr(torch, dtype)) * 2]
