"""SELU: an ELU with the two constants that keep mean and variance from layer to layer, in self-
normalising networks."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "activation",
    "workloads": {
        "small": {"rows": 29, "features": 403},
        "large": {"rows": 16384, "features": 1024},
        "half": {"rows": 32768, "features": 1024, "dtype": "bfloat16"},
        "odd": {"rows": 4093, "features": 997},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.selu(x)


def get_inputs(
    rows: int = 16384, features: int = 1024, dtype: str = "float32"
) -> list[torch.Tensor]:
    return [torch.randn(rows, features, dtype=getattr(torch, dtype)) * 1.5]
