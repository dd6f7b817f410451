"""Attention among all tokens of an image, without a mask: vision transformers and diffusion
transformers, at their awkward token counts."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "attention",
    "precision": "tf32",
    "workloads": {
        "small": {"batch": 1, "heads": 3, "length": 65, "features": 48},
        "vit": {"batch": 64, "heads": 16, "length": 197, "features": 64, "dtype": "float16"},
        "diffusion": {"batch": 2, "heads": 24, "length": 4096, "features": 64, "dtype": "bfloat16"},
        "odd": {"batch": 5, "heads": 16, "length": 577, "features": 80},
    },
    # Without "large" and "spikes": no precision knows scores of thousands well enough for the
    # softmax of two that nearly agree, so that honest kernels differ.
    "variants": ["small", "sorted", "ties"],
}


class Model(torch.nn.Module):
    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(query, key, value)


def get_inputs(
    batch: int = 64, heads: int = 16, length: int = 197, features: int = 64, dtype: str = "float32"
) -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    shape = (batch, heads, length, features)
    query, key, value = (torch.randn(shape, dtype=kind) for _ in range(3))
    return [query * 2, key, value]
