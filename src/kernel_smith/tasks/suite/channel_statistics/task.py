"""Variance and mean of each channel of a batch of images: the statistics of batch normalisation in
training."""

import torch

TASK = {
    "family": "reduction",
    "workloads": {
        "features": {"batch": 4, "channels": 32, "height": 28, "width": 28},
        "odd": {"batch": 3, "channels": 29, "height": 17, "width": 23},
        "deep": {"batch": 8, "channels": 192, "height": 7, "width": 7},
    },
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        variance, mean = torch.var_mean(x, dim=(0, 2, 3), correction=0)
        return variance, mean


def get_inputs(
    batch: int = 4, channels: int = 32, height: int = 28, width: int = 28
) -> list[torch.Tensor]:
    spread = torch.rand(channels, 1, 1) * 2 + 0.5
    centre = torch.randn(channels, 1, 1) * 2
    return [torch.randn(batch, channels, height, width) * spread + centre]
