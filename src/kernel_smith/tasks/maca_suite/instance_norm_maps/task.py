"""Instance normalisation: every channel of every image by its own mean and variance, as in
networks for style transfer and image translation."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "norm",
    "workloads": {
        "small": {"batch": 2, "channels": 5, "height": 29, "width": 37},
        "large": {"batch": 4, "channels": 64, "height": 256, "width": 256},
        "half": {"batch": 4, "channels": 128, "height": 256, "width": 256, "dtype": "float16"},
        "odd": {"batch": 3, "channels": 37, "height": 121, "width": 203},
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
        return F.instance_norm(x, weight=self.weight, bias=self.bias, eps=1e-5)


def get_inputs(
    batch: int = 4, channels: int = 64, height: int = 256, width: int = 256, dtype: str = "float32"
) -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    centre = torch.randn(batch, channels, 1, 1, dtype=kind)
    return [torch.randn(batch, channels, height, width, dtype=kind) * 2 + centre]


def get_init_inputs(channels: int = 64, dtype: str = "float32") -> list[object]:
    return [channels, dtype]
