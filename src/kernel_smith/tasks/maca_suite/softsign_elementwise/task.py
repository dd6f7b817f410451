"""Softsign, x / (1 + |x|): bounds the speaker embeddings and features of speech synthesis networks
such as Deep Voice."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "activation",
    "workloads": {
        "small": {"frames": 83, "channels": 127},
        "large": {"frames": 65536, "channels": 256},
        "half": {"frames": 131072, "channels": 256, "dtype": "bfloat16"},
        "odd": {"frames": 10007, "channels": 259},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.softsign(x)


def get_inputs(
    frames: int = 65536, channels: int = 256, dtype: str = "float32"
) -> list[torch.Tensor]:
    return [torch.randn(frames, channels, dtype=getattr(torch, dtype)) * 3]
