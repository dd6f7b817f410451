"""Average over 3x3 windows with padding that does not count, as in the Inception family."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "pooling",
    "workloads": {
        "same_size": {"batch": 1, "channels": 24, "height": 32, "width": 32, "stride": 1},
        "odd": {"batch": 2, "channels": 17, "height": 35, "width": 41, "stride": 2},
    },
}


class Model(torch.nn.Module):
    def __init__(self, stride: int) -> None:
        super().__init__()
        self.stride = stride

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.avg_pool2d(x, 3, stride=self.stride, padding=1, count_include_pad=False)


def get_inputs(
    batch: int = 1, channels: int = 24, height: int = 32, width: int = 32, stride: int = 1
) -> list[torch.Tensor]:
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs(stride: int = 1) -> list[int]:
    return [stride]
