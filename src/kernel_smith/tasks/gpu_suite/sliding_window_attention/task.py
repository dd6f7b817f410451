"""Causal attention in which a token sees only the last few hundred or thousand: the local layers of
Mistral, Gemma and gpt-oss."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "attention",
    "precision": "tf32",
    "workloads": {
        "small": {"batch": 1, "heads": 3, "length": 101, "features": 40, "window": 17},
        "gemma": {
            "batch": 1,
            "heads": 16,
            "length": 4096,
            "features": 128,
            "window": 1024,
            "dtype": "bfloat16",
        },
        "gpt_oss": {
            "batch": 2,
            "heads": 32,
            "length": 2048,
            "features": 64,
            "window": 128,
            "dtype": "bfloat16",
        },
        "odd": {"batch": 2, "heads": 7, "length": 1501, "features": 72, "window": 333},
    },
    # Without "large" and "spikes": no precision knows scores of thousands well enough for the
    # softmax of two that nearly agree, so that honest kernels differ.
    "variants": ["small", "sorted", "ties"],
}


class Model(torch.nn.Module):
    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(query.shape[2], device=query.device)
        distance = positions[:, None] - positions
        visible = (distance >= 0) & (distance < self.window)
        return F.scaled_dot_product_attention(query, key, value, attn_mask=visible)


def get_inputs(
    batch: int = 1,
    heads: int = 16,
    length: int = 4096,
    features: int = 128,
    window: int = 1024,
    dtype: str = "float32",
) -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    shape = (batch, heads, length, features)
    query, key, value = (torch.randn(shape, dtype=kind) for _ in range(3))
    return [query * 2, key, value]


def get_init_inputs(window: int = 1024) -> list[int]:
    return [window]
