"""Penalise the logits of tokens that a request has produced already, by a factor of its own, then
divide by its temperature: the logit processing of every serving engine."""

import torch

TASK = {
    "family": "serving",
    "workloads": {
        "small": {"requests": 3, "vocabulary": 20003, "produced": 50},
        "batch": {"requests": 128, "vocabulary": 128256, "produced": 2048},
        "odd": {"requests": 61, "vocabulary": 50257, "produced": 999, "dtype": "float16"},
    },
}


class Model(torch.nn.Module):
    def forward(
        self,
        logits: torch.Tensor,
        tokens: torch.Tensor,
        penalty: torch.Tensor,
        temperature: torch.Tensor,
    ) -> torch.Tensor:
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        seen = torch.zeros_like(logits, dtype=torch.bool).scatter(1, tokens, True)
        factor = penalty[:, None]
        penalised = torch.where(wide > 0, wide / factor, wide * factor)
        return torch.where(seen, penalised, wide) / temperature[:, None]


def get_inputs(
    requests: int = 128, vocabulary: int = 128256, produced: int = 2048, dtype: str = "float32"
) -> list[torch.Tensor]:
    logits = torch.randn(requests, vocabulary, dtype=getattr(torch, dtype)) * 3
    tokens = torch.randint(vocabulary, (requests, produced))
    return [logits, tokens, torch.rand(requests) + 1.1, torch.rand(requests) + 0.5]
