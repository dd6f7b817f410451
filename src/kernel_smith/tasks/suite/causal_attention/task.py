"""Causal scaled dot product attention of one layer: scores, softmax and weighted values."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "attention",
    "workloads": {
        "prefill": {"batch": 1, "heads": 4, "length": 128, "features": 32},
        "odd": {"batch": 2, "heads": 3, "length": 77, "features": 40},
        "short": {"batch": 8, "heads": 4, "length": 16, "features": 64},
    },
    # Without "large" and "spikes": single precision does not know scores of thousands and more well
    # enough for the softmax of two that nearly agree, so that honest kernels differ.
    "variants": ["small", "sorted", "ties"],
}


class Model(torch.nn.Module):
    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(query, key, value, is_causal=True)


def get_inputs(
    batch: int = 1, heads: int = 4, length: int = 128, features: int = 32
) -> list[torch.Tensor]:
    shape = (batch, heads, length, features)
    query, key, value = (torch.randn(shape) for _ in range(3))
    return [query * 1.5, key, value]
