"""Look up the vectors of a batch of tokens in a large table and scale them, as Gemma does at the
start of its forward pass."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "indexing",
    "workloads": {
        "small": {"tokens": 50, "vocabulary": 2003, "hidden": 130},
        "prefill": {"tokens": 8192, "vocabulary": 128256, "hidden": 4096, "dtype": "bfloat16"},
        "odd": {"tokens": 4099, "vocabulary": 32003, "hidden": 3001, "dtype": "float16"},
    },
}


class Model(torch.nn.Module):
    def __init__(self, vocabulary: int, hidden: int, dtype: str) -> None:
        super().__init__()
        kind = getattr(torch, dtype)
        self.table = torch.nn.Parameter(torch.randn(vocabulary, hidden, dtype=kind))
        self.factor = hidden**0.5

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return F.embedding(tokens, self.table) * self.factor


def get_inputs(
    tokens: int = 8192, vocabulary: int = 128256, hidden: int = 4096, dtype: str = "float32"
) -> list[torch.Tensor]:
    return [torch.randint(vocabulary, (tokens,))]


def get_init_inputs(
    vocabulary: int = 128256, hidden: int = 4096, dtype: str = "float32"
) -> list[object]:
    return [vocabulary, hidden, dtype]
