"""The gated linear unit: the first half of the last dimension times the sigmoid of the second
half, as in the convolution modules of Conformer and in gated convolutional networks."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "activation",
    "workloads": {
        "small": {"tokens": 31, "channels": 205},
        "large": {"tokens": 16384, "channels": 512},
        "half": {"tokens": 32768, "channels": 512, "dtype": "float16"},
        "odd": {"tokens": 3001, "channels": 643},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.glu(x, dim=-1)


def get_inputs(
    tokens: int = 16384, channels: int = 512, dtype: str = "float32"
) -> list[torch.Tensor]:
    return [torch.randn(tokens, 2 * channels, dtype=getattr(torch, dtype)) * 2]
