"""RMS normalisation of every query and key head, each with its own weight, before the rotary
embedding: Qwen3, Gemma 3 and other models that normalise queries and keys."""

import torch

TASK = {
    "family": "normalisation",
    "workloads": {
        "small": {"tokens": 7, "query_heads": 8, "key_heads": 2, "features": 72},
        "decode": {
            "tokens": 256,
            "query_heads": 32,
            "key_heads": 8,
            "features": 128,
            "dtype": "bfloat16",
        },
        "prefill": {
            "tokens": 8192,
            "query_heads": 64,
            "key_heads": 8,
            "features": 128,
            "dtype": "bfloat16",
        },
        "odd": {"tokens": 2049, "query_heads": 20, "key_heads": 5, "features": 100},
    },
    "library_calls": False,
}


def normalised(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    inverse = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (wide * inverse * weight).to(x.dtype)


class Model(torch.nn.Module):
    def __init__(self, features: int, dtype: str) -> None:
        super().__init__()
        kind = getattr(torch, dtype)
        self.query_weight = torch.nn.Parameter(1 + 0.3 * torch.randn(features, dtype=kind))
        self.key_weight = torch.nn.Parameter(1 + 0.3 * torch.randn(features, dtype=kind))

    def forward(self, query: torch.Tensor, key: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return normalised(query, self.query_weight), normalised(key, self.key_weight)


def get_inputs(
    tokens: int = 256,
    query_heads: int = 32,
    key_heads: int = 8,
    features: int = 128,
    dtype: str = "float32",
) -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    query = torch.randn(tokens, query_heads, features, dtype=kind) * 2
    key = torch.randn(tokens, key_heads, features, dtype=kind)
    return [query, key]


def get_init_inputs(features: int = 128, dtype: str = "float32") -> list[object]:
    return [features, dtype]
