"""Hard swish, x relu6(x + 3) / 6: the activation of the later stages of MobileNetV3, made of cheap
operations."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "activation",
    "workloads": {
        "small": {"batch": 1, "channels": 11, "height": 29, "width": 43},
        "large": {"batch": 64, "channels": 240, "height": 28, "width": 28},
        "half": {"batch": 256, "channels": 480, "height": 14, "width": 14, "dtype": "float16"},
        "odd": {"batch": 17, "channels": 67, "height": 57, "width": 61},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.hardswish(x)


def get_inputs(
    batch: int = 64, channels: int = 240, height: int = 28, width: int = 28, dtype: str = "float32"
) -> list[torch.Tensor]:
    return [torch.randn(batch, channels, height, width, dtype=getattr(torch, dtype)) * 2.5]
