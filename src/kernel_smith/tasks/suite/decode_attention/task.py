"""Attention of one new token per sequence over its cached keys and values, several query heads
sharing a key head, sequences of different length: the hot loop of serving a language model."""

import torch

TASK = {
    "family": "attention",
    "workloads": {
        "serving": {"batch": 4, "query_heads": 8, "key_heads": 2, "capacity": 256, "features": 32},
        "odd": {"batch": 3, "query_heads": 6, "key_heads": 3, "capacity": 331, "features": 40},
        "long": {"batch": 1, "query_heads": 4, "key_heads": 1, "capacity": 3000, "features": 64},
    },
    # Without "large" and "spikes": single precision does not know scores of thousands and more well
    # enough for the softmax of two that nearly agree, so that honest kernels differ.
    "variants": ["small", "sorted", "ties"],
}


class Model(torch.nn.Module):
    def forward(
        self, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, lengths: torch.Tensor
    ) -> torch.Tensor:
        batch, query_heads, features = query.shape
        key_heads, capacity = keys.shape[1:3]
        grouped = query.view(batch, key_heads, query_heads // key_heads, features)
        scores = grouped @ keys.transpose(-1, -2) * features**-0.5
        hidden = torch.arange(capacity) >= lengths[:, None, None, None]
        weights = torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1)
        return (weights @ values).view(batch, query_heads, features)


def get_inputs(
    batch: int = 4,
    query_heads: int = 8,
    key_heads: int = 2,
    capacity: int = 256,
    features: int = 32,
) -> list[torch.Tensor]:
    query = torch.randn(batch, query_heads, features) * 1.5
    keys = torch.randn(batch, key_heads, capacity, features)
    values = torch.randn(batch, key_heads, capacity, features)
    lengths = torch.randint(capacity // 2, capacity + 1, (batch,))
    return [query, keys, values, lengths]
