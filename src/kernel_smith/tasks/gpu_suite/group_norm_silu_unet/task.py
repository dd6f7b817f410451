"""Group normalisation followed by SiLU on latent feature maps: the start of every residual block of
a Stable Diffusion U-Net and its decoder."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "normalisation",
    "workloads": {
        "small": {"batch": 1, "channels": 64, "height": 31, "width": 33},
        "latent": {"batch": 8, "channels": 320, "height": 128, "width": 128, "dtype": "float16"},
        "decoder": {"batch": 1, "channels": 128, "height": 1024, "width": 1024, "dtype": "float16"},
        "odd": {"batch": 3, "channels": 960, "height": 61, "width": 93},
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
        return F.silu(F.group_norm(x, 32, self.weight, self.bias, eps=1e-6))


def get_inputs(
    batch: int = 8,
    channels: int = 320,
    height: int = 128,
    width: int = 128,
    dtype: str = "float32",
) -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    centre = torch.randn(batch, channels, 1, 1, dtype=kind)
    return [torch.randn(batch, channels, height, width, dtype=kind) * 2 + centre]


def get_init_inputs(channels: int = 320, dtype: str = "float32") -> list[object]:
    return [channels, dtype]
