"""Depthwise convolution: every channel has its own filter, as in MobileNet and ConvNeXt."""

import torch

TASK = {
    "family": "convolution",
    "workloads": {
        "mobile": {"batch": 1, "channels": 64, "height": 28, "width": 28, "size": 3},
        "odd": {"batch": 2, "channels": 37, "height": 19, "width": 23, "size": 5},
        "large_filter": {"batch": 1, "channels": 48, "height": 14, "width": 14, "size": 7},
    },
}


class Model(torch.nn.Module):
    def __init__(self, channels: int, size: int) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(
            channels, channels, size, padding=size // 2, groups=channels
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.convolution(x)


def get_inputs(
    batch: int = 1, channels: int = 64, height: int = 28, width: int = 28, size: int = 3
) -> list[torch.Tensor]:
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs(channels: int = 64, size: int = 3) -> list[int]:
    return [channels, size]
