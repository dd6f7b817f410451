"""Short causal depthwise convolution over time followed by SiLU: the mixing step before the scan of
a Mamba block."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "convolution",
    "workloads": {
        "sequence": {"batch": 2, "channels": 128, "length": 256},
        "odd": {"batch": 3, "channels": 61, "length": 333},
        "long": {"batch": 1, "channels": 24, "length": 4000},
    },
}


class Model(torch.nn.Module):
    def __init__(self, channels: int, taps: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(channels, taps) * 0.5)
        self.bias = torch.nn.Parameter(torch.randn(channels) * 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        channels, taps = self.weight.shape
        past = F.pad(x, (taps - 1, 0))
        return F.silu(F.conv1d(past, self.weight[:, None], self.bias, groups=channels))


def get_inputs(batch: int = 2, channels: int = 128, length: int = 256) -> list[torch.Tensor]:
    return [torch.randn(batch, channels, length) * 2]


def get_init_inputs(channels: int = 128) -> list[int]:
    return [channels, 4]
