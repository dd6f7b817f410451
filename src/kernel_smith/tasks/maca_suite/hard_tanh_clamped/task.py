"""Hard tanh with the limits 0 and 20: the clipped ReLU after the convolutions over the spectrogram
in Deep Speech 2."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "activation",
    "workloads": {
        "small": {"batch": 1, "channels": 3, "bands": 41, "frames": 101},
        "large": {"batch": 16, "channels": 32, "bands": 81, "frames": 501},
        "half": {"batch": 32, "channels": 32, "bands": 81, "frames": 751, "dtype": "float16"},
        "odd": {"batch": 7, "channels": 31, "bands": 41, "frames": 613},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.hardtanh(x, 0.0, 20.0)


def get_inputs(
    batch: int = 16, channels: int = 32, bands: int = 81, frames: int = 501, dtype: str = "float32"
) -> list[torch.Tensor]:
    return [torch.randn(batch, channels, bands, frames, dtype=getattr(torch, dtype)) * 12]
