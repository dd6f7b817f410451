"""3x3 maximum pooling with stride 2 and padding, after the first convolution of a ResNet."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "pooling",
    "workloads": {
        "small": {"batch": 1, "channels": 19, "height": 55, "width": 57},
        "stem": {"batch": 128, "channels": 64, "height": 112, "width": 112, "dtype": "float16"},
        "odd": {"batch": 15, "channels": 99, "height": 203, "width": 151},
    },
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.max_pool2d(x, 3, stride=2, padding=1)


def get_inputs(
    batch: int = 128,
    channels: int = 64,
    height: int = 112,
    width: int = 112,
    dtype: str = "float32",
) -> list[torch.Tensor]:
    return [torch.randn(batch, channels, height, width, dtype=getattr(torch, dtype))]
