"""Softmax of attention scores with a learned sink per head: one more logit that takes part in the
sum and is dropped afterwards, as in gpt-oss and StreamingLLM."""

import torch

TASK = {
    "family": "softmax",
    "workloads": {
        "small": {"batch": 1, "heads": 4, "queries": 19, "keys": 513},
        "decode": {"batch": 64, "heads": 64, "queries": 1, "keys": 8192, "dtype": "bfloat16"},
        "prefill": {"batch": 1, "heads": 64, "queries": 1024, "keys": 1024},
        "odd": {"batch": 5, "heads": 24, "queries": 7, "keys": 4097},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def __init__(self, heads: int, dtype: str) -> None:
        super().__init__()
        # Sinks as strong as a few hundred keys, so that leaving them out shows.
        self.sinks = torch.nn.Parameter(torch.randn(heads, dtype=getattr(torch, dtype)) + 6)

    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        wide = scores.to(torch.promote_types(scores.dtype, torch.float32))
        sinks = self.sinks.to(wide.dtype)[:, None, None].expand(*scores.shape[:-1], 1)
        return torch.softmax(torch.cat([wide, sinks], dim=-1), dim=-1)[..., :-1].to(scores.dtype)


def get_inputs(
    batch: int = 64, heads: int = 64, queries: int = 1, keys: int = 8192, dtype: str = "float32"
) -> list[torch.Tensor]:
    return [torch.randn(batch, heads, queries, keys, dtype=getattr(torch, dtype))]


def get_init_inputs(heads: int = 64, dtype: str = "float32") -> list[object]:
    return [heads, dtype]
