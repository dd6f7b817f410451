"""The exact GELU, by the error function, of a feed-forward layer's intermediate activations, as
encoders of the BERT and ViT families compute it."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "activation",
    "workloads": {
        "small": {"tokens": 77, "intermediate": 3072, "dtype": "float32"},
        "encoder": {"tokens": 16384, "intermediate": 4096, "dtype": "float16"},
        "odd": {"tokens": 6304, "intermediate": 5119, "dtype": "float32"},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(x)


def get_inputs(
    tokens: int = 16384, intermediate: int = 4096, dtype: str = "float16"
) -> list[torch.Tensor]:
    return [torch.randn(tokens, intermediate, dtype=getattr(torch, dtype)) * 2]
