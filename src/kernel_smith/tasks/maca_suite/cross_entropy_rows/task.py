"""Mean cross entropy of logits and class numbers, in single precision: the loss of classifiers and
language models."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "loss",
    "workloads": {
        "small": {"rows": 31, "classes": 1511},
        "large": {"rows": 1024, "classes": 32000},
        "half": {"rows": 2048, "classes": 32000, "dtype": "bfloat16"},
        "odd": {"rows": 1021, "classes": 10007},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        return F.cross_entropy(wide, targets)


def get_inputs(
    rows: int = 1024, classes: int = 32000, dtype: str = "float32"
) -> list[torch.Tensor]:
    # Sometimes sure logits, sometimes unsure ones: the loss must not be known beforehand.
    logits = torch.randn(rows, classes) * (torch.rand(()) * 5 + 0.5)
    return [logits.to(getattr(torch, dtype)), torch.randint(classes, (rows,))]
