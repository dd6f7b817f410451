"""Softplus, log(1 + exp(x)), which is the identity above a threshold of 20: it makes the step
sizes of Mamba and the scales of variational models positive."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "activation",
    "workloads": {
        "small": {"tokens": 43, "channels": 157},
        "large": {"tokens": 4096, "channels": 5120},
        "half": {"tokens": 8192, "channels": 5120, "dtype": "bfloat16"},
        "odd": {"tokens": 2011, "channels": 1537},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.softplus(x, beta=1.0, threshold=20.0)


def get_inputs(
    tokens: int = 4096, channels: int = 5120, dtype: str = "float32"
) -> list[torch.Tensor]:
    return [torch.randn(tokens, channels, dtype=getattr(torch, dtype)) * 8]
