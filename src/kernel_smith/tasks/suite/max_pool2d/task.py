"""Maximum over 3x3 windows with stride 2 and padding 1, as after the first convolution of a
ResNet."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "pooling",
    "workloads": {
        "stem": {"batch": 1, "channels": 24, "height": 56, "width": 56},
        "odd": {"batch": 2, "channels": 19, "height": 37, "width": 53},
    },
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.max_pool2d(x, kernel_size=3, stride=2, padding=1)


def get_inputs(
    batch: int = 1, channels: int = 24, height: int = 56, width: int = 56
) -> list[torch.Tensor]:
    return [torch.randn(batch, channels, height, width)]
