"""Decoding with DeepSeek's multi-head latent attention: all heads read one compressed cache, whose
first part serves as keys and values and whose last 64 features carry the rotary position."""

import torch

TASK = {
    "family": "attention",
    "precision": "tf32",
    "workloads": {
        "small": {"batch": 2, "heads": 5, "capacity": 150, "latent": 72, "rotary": 16},
        "serving": {
            "batch": 32,
            "heads": 128,
            "capacity": 2048,
            "latent": 512,
            "rotary": 64,
            "dtype": "bfloat16",
        },
        "odd": {"batch": 3, "heads": 16, "capacity": 4001, "latent": 512, "rotary": 64},
    },
    # Without "large" and "spikes": no precision knows scores of thousands well enough for the
    # softmax of two that nearly agree, so that honest kernels differ.
    "variants": ["small", "sorted", "ties"],
}


class Model(torch.nn.Module):
    def __init__(self, latent: int, scale: float) -> None:
        super().__init__()
        self.latent, self.scale = latent, scale

    def forward(
        self, query: torch.Tensor, cache: torch.Tensor, lengths: torch.Tensor
    ) -> torch.Tensor:
        scores = query @ cache.transpose(-1, -2)
        scores = scores.to(torch.promote_types(query.dtype, torch.float32)) * self.scale
        hidden = torch.arange(cache.shape[1], device=cache.device) >= lengths[:, None, None]
        weights = torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1)
        return weights.to(query.dtype) @ cache[..., : self.latent]


def get_inputs(
    batch: int = 32,
    heads: int = 128,
    capacity: int = 2048,
    latent: int = 512,
    rotary: int = 64,
    dtype: str = "float32",
) -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    query = torch.randn(batch, heads, latent + rotary, dtype=kind)
    cache = torch.randn(batch, capacity, latent + rotary, dtype=kind)
    return [query, cache, torch.randint(capacity // 2, capacity + 1, (batch,))]


def get_init_inputs(latent: int = 512, rotary: int = 64) -> list[object]:
    return [latent, (latent + rotary) ** -0.5]
