"""Attention of one new token per request over its cached keys and values, four or eight query heads
sharing a key head, requests of different length: the hot loop of serving."""

import torch

TASK = {
    "family": "attention",
    "precision": "tf32",
    "workloads": {
        "small": {"batch": 2, "query_heads": 6, "key_heads": 2, "capacity": 201, "features": 40},
        "batch": {
            "batch": 64,
            "query_heads": 32,
            "key_heads": 8,
            "capacity": 2048,
            "features": 128,
            "dtype": "bfloat16",
        },
        "long": {
            "batch": 1,
            "query_heads": 64,
            "key_heads": 8,
            "capacity": 8192,
            "features": 128,
            "dtype": "float16",
        },
        "odd": {"batch": 7, "query_heads": 28, "key_heads": 4, "capacity": 3001, "features": 72},
    },
    # Without "large" and "spikes": no precision knows scores of thousands well enough for the
    # softmax of two that nearly agree, so that honest kernels differ.
    "variants": ["small", "sorted", "ties"],
}


class Model(torch.nn.Module):
    def forward(
        self, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, lengths: torch.Tensor
    ) -> torch.Tensor:
        batch, query_heads, features = query.shape
        key_heads, capacity = keys.shape[1:3]
        grouped = query.view(batch, key_heads, query_heads // key_heads, features)
        scores = grouped @ keys.transpose(-1, -2)
        scores = scores.to(torch.promote_types(query.dtype, torch.float32)) * features**-0.5
        hidden = torch.arange(capacity, device=query.device) >= lengths[:, None, None, None]
        weights = torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1)
        return (weights.to(query.dtype) @ values).view(batch, query_heads, features)


def get_inputs(
    batch: int = 64,
    query_heads: int = 32,
    key_heads: int = 8,
    capacity: int = 2048,
    features: int = 128,
    dtype: str = "float32",
) -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    query = torch.randn(batch, query_heads, features, dtype=kind)
    keys = torch.randn(batch, key_heads, capacity, features, dtype=kind)
    values = torch.randn(batch, key_heads, capacity, features, dtype=kind)
    return [query, keys, values, torch.randint(capacity // 2, capacity + 1, (batch,))]
