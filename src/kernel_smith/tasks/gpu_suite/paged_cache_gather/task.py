"""Collect the pages of each request into contiguous keys and values, zeros after its length: what
chunked prefill and cache transfer between servers do with a paged cache."""

import torch

TASK = {
    "family": "kv-cache",
    "workloads": {
        "small": {"batch": 2, "pages": 5, "page_size": 12, "heads": 3, "features": 40},
        "serving": {
            "batch": 16,
            "pages": 128,
            "page_size": 16,
            "heads": 8,
            "features": 128,
            "dtype": "bfloat16",
        },
        "odd": {"batch": 9, "pages": 101, "page_size": 10, "heads": 5, "features": 72},
    },
}


class Model(torch.nn.Module):
    def forward(
        self,
        keys: torch.Tensor,
        values: torch.Tensor,
        page_table: torch.Tensor,
        lengths: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        capacity = page_table.shape[1] * keys.shape[1]
        positions = torch.arange(capacity, device=keys.device)
        valid = (positions < lengths[:, None])[..., None, None]

        def gathered(pool: torch.Tensor) -> torch.Tensor:
            return torch.where(valid, pool[page_table].flatten(1, 2), 0)

        return gathered(keys), gathered(values)


def get_inputs(
    batch: int = 16,
    pages: int = 128,
    page_size: int = 16,
    heads: int = 8,
    features: int = 128,
    dtype: str = "float32",
) -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    pool = (batch * pages, page_size, heads, features)
    keys, values = torch.randn(pool, dtype=kind), torch.randn(pool, dtype=kind)
    page_table = torch.randperm(batch * pages).view(batch, pages)
    capacity = pages * page_size
    return [keys, values, page_table, torch.randint(capacity // 2, capacity + 1, (batch,))]
