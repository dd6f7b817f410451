"""Bilinear enlargement of feature maps, as in segmentation heads and feature pyramids."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "resampling",
    "workloads": {
        "double": {
            "channels": 16,
            "height": 32,
            "width": 32,
            "out_height": 64,
            "out_width": 64,
        },
        "odd": {
            "channels": 11,
            "height": 19,
            "width": 29,
            "out_height": 67,
            "out_width": 83,
        },
    },
}


class Model(torch.nn.Module):
    def __init__(self, out_height: int, out_width: int) -> None:
        super().__init__()
        self.size = (out_height, out_width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.interpolate(x, self.size, mode="bilinear", align_corners=False)


def get_inputs(
    channels: int = 16, height: int = 32, width: int = 32, out_height: int = 64, out_width: int = 64
) -> list[torch.Tensor]:
    return [torch.randn(1, channels, height, width)]


def get_init_inputs(out_height: int = 64, out_width: int = 64) -> list[int]:
    return [out_height, out_width]
