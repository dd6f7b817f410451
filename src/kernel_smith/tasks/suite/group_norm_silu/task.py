"""Group normalisation followed by SiLU, as before every convolution of a diffusion U-Net."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "normalisation",
    "workloads": {
        "unet": {"batch": 2, "channels": 64, "groups": 8, "height": 24, "width": 24},
        "odd": {"batch": 3, "channels": 35, "groups": 5, "height": 19, "width": 23},
    },
}


class Model(torch.nn.Module):
    def __init__(self, channels: int, groups: int) -> None:
        super().__init__()
        self.groups = groups
        self.weight = torch.nn.Parameter(1 + 0.3 * torch.randn(channels))
        self.bias = torch.nn.Parameter(0.3 * torch.randn(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.silu(F.group_norm(x, self.groups, self.weight, self.bias, eps=1e-5))


def get_inputs(
    batch: int = 2, channels: int = 64, height: int = 24, width: int = 24, groups: int = 8
) -> list[torch.Tensor]:
    centre = torch.randn(batch, channels, 1, 1)
    return [torch.randn(batch, channels, height, width) * 2 + centre]


def get_init_inputs(channels: int = 64, groups: int = 8) -> list[int]:
    return [channels, groups]
