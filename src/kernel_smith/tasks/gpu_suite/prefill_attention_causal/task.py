"""Causal attention of whole prompts, several query heads sharing a key head: the prefill of Llama 3
and Qwen models."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "attention",
    "precision": "tf32",
    "workloads": {
        "small": {"batch": 1, "query_heads": 4, "key_heads": 2, "length": 77, "features": 40},
        "llama": {
            "batch": 1,
            "query_heads": 32,
            "key_heads": 8,
            "length": 4096,
            "features": 128,
            "dtype": "bfloat16",
        },
        "batch": {
            "batch": 16,
            "query_heads": 16,
            "key_heads": 16,
            "length": 1024,
            "features": 64,
            "dtype": "float16",
        },
        "odd": {"batch": 3, "query_heads": 12, "key_heads": 4, "length": 1001, "features": 72},
    },
    # Without "large" and "spikes": no precision knows scores of thousands well enough for the
    # softmax of two that nearly agree, so that honest kernels differ.
    "variants": ["small", "sorted", "ties"],
}


class Model(torch.nn.Module):
    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        shared = query.shape[1] // key.shape[1]
        key = key.repeat_interleave(shared, dim=1)
        value = value.repeat_interleave(shared, dim=1)
        return F.scaled_dot_product_attention(query, key, value, is_causal=True)


def get_inputs(
    batch: int = 1,
    query_heads: int = 32,
    key_heads: int = 8,
    length: int = 4096,
    features: int = 128,
    dtype: str = "float32",
) -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    query = torch.randn(batch, query_heads, length, features, dtype=kind) * 2
    key = torch.randn(batch, key_heads, length, features, dtype=kind)
    value = torch.randn(batch, key_heads, length, features, dtype=kind)
    return [query, key, value]
