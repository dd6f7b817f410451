"""Attention of one new token per request over keys and values that lie in pages, found through each
request's page table, as in vLLM and SGLang."""

import torch

TASK = {
    "family": "attention",
    "precision": "tf32",
    "workloads": {
        "small": {
            "batch": 2,
            "query_heads": 4,
            "key_heads": 2,
            "pages": 9,
            "page_size": 16,
            "features": 40,
        },
        "serving": {
            "batch": 32,
            "query_heads": 32,
            "key_heads": 8,
            "pages": 128,
            "page_size": 16,
            "features": 128,
            "dtype": "bfloat16",
        },
        "large_pages": {
            "batch": 8,
            "query_heads": 16,
            "key_heads": 2,
            "pages": 64,
            "page_size": 64,
            "features": 128,
            "dtype": "float16",
        },
        "odd": {
            "batch": 5,
            "query_heads": 21,
            "key_heads": 3,
            "pages": 131,
            "page_size": 12,
            "features": 72,
        },
    },
    # Without "large" and "spikes": no precision knows scores of thousands well enough for the
    # softmax of two that nearly agree, so that honest kernels differ.
    "variants": ["small", "sorted", "ties"],
}


class Model(torch.nn.Module):
    def forward(
        self,
        query: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        page_table: torch.Tensor,
        lengths: torch.Tensor,
    ) -> torch.Tensor:
        batch, query_heads, features = query.shape
        key_heads = keys.shape[2]
        own_keys = keys[page_table].flatten(1, 2).transpose(1, 2)
        own_values = values[page_table].flatten(1, 2).transpose(1, 2)
        grouped = query.view(batch, key_heads, query_heads // key_heads, features)
        scores = grouped @ own_keys.transpose(-1, -2)
        scores = scores.to(torch.promote_types(query.dtype, torch.float32)) * features**-0.5
        positions = torch.arange(own_keys.shape[2], device=query.device)
        hidden = positions >= lengths[:, None, None, None]
        weights = torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1)
        return (weights.to(query.dtype) @ own_values).view(batch, query_heads, features)


def get_inputs(
    batch: int = 32,
    query_heads: int = 32,
    key_heads: int = 8,
    pages: int = 128,
    page_size: int = 16,
    features: int = 128,
    dtype: str = "float32",
) -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    query = torch.randn(batch, query_heads, features, dtype=kind) * 2
    pool = (batch * pages, page_size, key_heads, features)
    keys, values = torch.randn(pool, dtype=kind), torch.randn(pool, dtype=kind)
    page_table = torch.randperm(batch * pages).view(batch, pages)
    capacity = pages * page_size
    return [query, keys, values, page_table, torch.randint(capacity // 2, capacity + 1, (batch,))]
