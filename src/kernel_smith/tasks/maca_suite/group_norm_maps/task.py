"""Group normalisation of feature maps in 32 groups of channels, as in the residual blocks of
diffusion models and in detectors that train with small batches."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "norm",
    "workloads": {
        "small": {"batch": 1, "channels": 64, "height": 13, "width": 17},
        "large": {"batch": 4, "channels": 320, "height": 96, "width": 96},
        "half": {"batch": 8, "channels": 320, "height": 128, "width": 128, "dtype": "float16"},
        "odd": {"batch": 3, "channels": 352, "height": 37, "width": 59},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def __init__(self, channels: int, dtype: str) -> None:
        super().__init__()
        kind = getattr(torch, dtype)
        self.weight = torch.nn.Parameter(1 + 0.3 * torch.randn(channels, dtype=kind))
        self.bias = torch.nn.Parameter(torch.randn(channels, dtype=kind))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.group_norm(x, 32, self.weight, self.bias, eps=1e-5)


def get_inputs(
    batch: int = 4, channels: int = 320, height: int = 96, width: int = 96, dtype: str = "float32"
) -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    centre = torch.randn(batch, channels, 1, 1, dtype=kind)
    return [torch.randn(batch, channels, height, width, dtype=kind) * 2 + centre]


def get_init_inputs(channels: int = 320, dtype: str = "float32") -> list[object]:
    return [channels, dtype]
