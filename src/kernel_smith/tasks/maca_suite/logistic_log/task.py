"""The logarithm of the logistic function (log-sigmoid) of scores, as in losses with negative
sampling and in preference optimisation."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "activation",
    "workloads": {
        "small": {"rows": 61, "scores": 149},
        "large": {"rows": 16384, "scores": 1024},
        "half": {"rows": 65536, "scores": 512, "dtype": "bfloat16"},
        "odd": {"rows": 8191, "scores": 501},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.logsigmoid(x)


def get_inputs(rows: int = 16384, scores: int = 1024, dtype: str = "float32") -> list[torch.Tensor]:
    return [torch.randn(rows, scores, dtype=getattr(torch, dtype)) * 4]
