"""Tanh shrinkage, x - tanh(x): a smooth threshold that pulls small coefficients to zero, in sparse
coding and denoising networks."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "activation",
    "workloads": {
        "small": {"rows": 47, "coefficients": 193},
        "large": {"rows": 16384, "coefficients": 1024},
        "half": {"rows": 32768, "coefficients": 1024, "dtype": "bfloat16"},
        "odd": {"rows": 5003, "coefficients": 1019},
    },
    # Without "small": the difference of two nearly equal numbers is all rounding.
    "variants": ["large", "spikes", "sorted", "ties"],
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.tanhshrink(x)


def get_inputs(
    rows: int = 16384, coefficients: int = 1024, dtype: str = "float32"
) -> list[torch.Tensor]:
    return [torch.randn(rows, coefficients, dtype=getattr(torch, dtype)) * 2]
