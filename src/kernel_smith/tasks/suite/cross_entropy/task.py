"""Cross entropy of each sample from logits, with label smoothing and ignored samples: the loss of
language models and classifiers before averaging."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "loss",
    "workloads": {
        "vocabulary": {"samples": 24, "classes": 8000},
        "odd": {"samples": 331, "classes": 203},
        "images": {"samples": 128, "classes": 1000},
    },
}


class Model(torch.nn.Module):
    def forward(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(
            logits, targets, ignore_index=-100, label_smoothing=0.1, reduction="none"
        )


def get_inputs(samples: int = 24, classes: int = 8000) -> list[torch.Tensor]:
    logits = torch.randn(samples, classes) * 4
    targets = torch.randint(classes, (samples,))
    return [logits, targets.masked_fill(torch.rand(samples) < 0.1, -100)]
