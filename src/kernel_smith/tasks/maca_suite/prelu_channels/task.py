"""PReLU with a learned slope per channel of feature maps: the activation of ArcFace's face
recognition networks and of many super-resolution networks."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "activation",
    "workloads": {
        "small": {"batch": 2, "channels": 13, "height": 21, "width": 27},
        "large": {"batch": 16, "channels": 64, "height": 112, "width": 112},
        "half": {"batch": 128, "channels": 64, "height": 56, "width": 56, "dtype": "float16"},
        "odd": {"batch": 5, "channels": 67, "height": 93, "width": 101},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def __init__(self, channels: int, dtype: str) -> None:
        super().__init__()
        kind = getattr(torch, dtype)
        self.slopes = torch.nn.Parameter(0.25 + 0.1 * torch.randn(channels, dtype=kind))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.prelu(x, self.slopes)


def get_inputs(
    batch: int = 16, channels: int = 64, height: int = 112, width: int = 112, dtype: str = "float32"
) -> list[torch.Tensor]:
    shape = (batch, channels, height, width)
    return [torch.randn(shape, dtype=getattr(torch, dtype)) * 2]


def get_init_inputs(channels: int = 64, dtype: str = "float32") -> list[object]:
    return [channels, dtype]
