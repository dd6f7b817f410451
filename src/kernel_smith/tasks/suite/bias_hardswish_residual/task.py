"""Per-channel bias, hardswish and a residual connection in one pass: the pointwise tail of a
MobileNetV3 block."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "elementwise",
    "workloads": {
        "features": {"batch": 2, "channels": 40, "height": 28, "width": 28},
        "odd": {"batch": 3, "channels": 37, "height": 19, "width": 23},
    },
}


class Model(torch.nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(channels))

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        return F.hardswish(x + self.bias[:, None, None]) + residual


def get_inputs(
    batch: int = 2, channels: int = 40, height: int = 28, width: int = 28
) -> list[torch.Tensor]:
    shape = (batch, channels, height, width)
    return [torch.randn(shape) * 2, torch.randn(shape)]


def get_init_inputs(channels: int = 40) -> list[int]:
    return [channels]
