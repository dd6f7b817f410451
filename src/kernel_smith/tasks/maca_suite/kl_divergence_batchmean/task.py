"""Kullback-Leibler divergence of probabilities from predicted log probabilities, summed and divided
by the number of samples, in single precision: distillation and variational training."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "loss",
    "workloads": {
        "small": {"samples": 37, "classes": 701},
        "large": {"samples": 4096, "classes": 2048},
        "half": {"samples": 4096, "classes": 8192, "dtype": "bfloat16"},
        "odd": {"samples": 2003, "classes": 3001},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)
        return F.kl_div(x.to(wide), target.to(wide), reduction="batchmean")


def get_inputs(
    samples: int = 4096, classes: int = 2048, dtype: str = "float32"
) -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    target = torch.softmax(torch.randn(samples, classes) * 2, dim=-1)
    # Sometimes good predictions, sometimes bad ones: the loss must not be known beforehand.
    logits = target.log() + torch.randn(samples, classes) * (torch.rand(()) * 2 + 0.5)
    return [torch.log_softmax(logits, dim=-1).to(kind), target.to(kind)]
