"""Probabilities over the vocabulary from logits and a temperature per request, in single precision:
the step before sampling in every serving engine."""

import torch

TASK = {
    "family": "softmax",
    "workloads": {
        "small": {"requests": 3, "vocabulary": 32003},
        "llama": {"requests": 256, "vocabulary": 128256, "dtype": "bfloat16"},
        "single": {"requests": 1, "vocabulary": 151936},
        "odd": {"requests": 61, "vocabulary": 50257, "dtype": "float16"},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, logits: torch.Tensor, temperature: torch.Tensor) -> torch.Tensor:
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        return torch.softmax(wide / temperature[:, None], dim=-1)


def get_inputs(
    requests: int = 256, vocabulary: int = 128256, dtype: str = "float32"
) -> list[torch.Tensor]:
    logits = torch.randn(requests, vocabulary, dtype=getattr(torch, dtype))
    return [logits, torch.rand(requests) + 0.6]
