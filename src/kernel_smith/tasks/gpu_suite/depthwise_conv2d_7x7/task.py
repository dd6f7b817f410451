"""A padded 7x7 depthwise convolution with bias, the spatial mixing of ConvNeXt."""

import torch

TASK = {
    "family": "convolution",
    "precision": "tf32",
    "workloads": {
        "small": {"batch": 1, "channels": 19, "height": 29, "width": 27},
        "early": {"batch": 32, "channels": 128, "height": 56, "width": 56, "dtype": "float16"},
        "late": {"batch": 64, "channels": 1024, "height": 7, "width": 7},
        "odd": {"batch": 11, "channels": 203, "height": 45, "width": 51},
    },
}


class Model(torch.nn.Module):
    def __init__(self, channels: int, dtype: str) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(
            channels, channels, 7, padding=3, groups=channels, dtype=getattr(torch, dtype)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.convolution(x)


def get_inputs(
    batch: int = 32,
    channels: int = 128,
    height: int = 56,
    width: int = 56,
    dtype: str = "float32",
) -> list[torch.Tensor]:
    return [torch.randn(batch, channels, height, width, dtype=getattr(torch, dtype))]


def get_init_inputs(channels: int = 128, dtype: str = "float32") -> list[object]:
    return [channels, dtype]
