"""The sigmoid form of GELU, x sigmoid(1.702 x): the activation of the feed-forward layers of
CLIP."""

import torch

TASK = {
    "family": "activation",
    "workloads": {
        "small": {"tokens": 17, "intermediate": 771},
        "large": {"tokens": 4928, "intermediate": 3072},
        "half": {"tokens": 16448, "intermediate": 4096, "dtype": "float16"},
        "odd": {"tokens": 2309, "intermediate": 2051},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(1.702 * x)


def get_inputs(
    tokens: int = 4928, intermediate: int = 3072, dtype: str = "float32"
) -> list[torch.Tensor]:
    return [torch.randn(tokens, intermediate, dtype=getattr(torch, dtype)) * 2]
