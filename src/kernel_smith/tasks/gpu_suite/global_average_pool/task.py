"""The mean of every channel over its feature map, before the classifier of a convolutional network
and in squeeze-and-excitation blocks."""

import torch

TASK = {
    "family": "pooling",
    "workloads": {
        "small": {"batch": 3, "channels": 101, "height": 7, "width": 7},
        "classifier": {"batch": 256, "channels": 2048, "height": 7, "width": 7, "dtype": "float16"},
        "excitation": {"batch": 64, "channels": 96, "height": 112, "width": 112},
        "odd": {"batch": 33, "channels": 601, "height": 29, "width": 31},
    },
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(dim=(2, 3))


def get_inputs(
    batch: int = 256,
    channels: int = 2048,
    height: int = 7,
    width: int = 7,
    dtype: str = "float32",
) -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    centre = torch.randn(batch, channels, 1, 1, dtype=kind)
    return [torch.randn(batch, channels, height, width, dtype=kind) + centre]
