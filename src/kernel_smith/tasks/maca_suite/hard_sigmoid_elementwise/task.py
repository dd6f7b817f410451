"""Hard sigmoid, relu6(x + 3) / 6: the gates of recurrent layers and of squeeze and excitation
where an exponential is too expensive."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "activation",
    "workloads": {
        "small": {"rows": 53, "gates": 173},
        "large": {"rows": 8192, "gates": 2048},
        "half": {"rows": 8192, "gates": 4096, "dtype": "float16"},
        "odd": {"rows": 3989, "gates": 1123},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.hardsigmoid(x)


def get_inputs(rows: int = 8192, gates: int = 2048, dtype: str = "float32") -> list[torch.Tensor]:
    return [torch.randn(rows, gates, dtype=getattr(torch, dtype)) * 2.5]
