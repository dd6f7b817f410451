"""Weighted sums of the embedding rows of each bag of ids, bags of uneven size: sparse features in a
recommendation model."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "indexing",
    "workloads": {
        "features": {"table_rows": 4000, "features": 64, "ids": 4096, "bags": 256},
        "odd": {"table_rows": 1777, "features": 37, "ids": 3001, "bags": 411},
    },
}


class Model(torch.nn.Module):
    def __init__(self, table_rows: int, features: int) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(table_rows, features))

    def forward(
        self, ids: torch.Tensor, offsets: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        return F.embedding_bag(ids, self.table, offsets, mode="sum", per_sample_weights=weights)


def get_inputs(
    table_rows: int = 4000, features: int = 64, ids: int = 4096, bags: int = 256
) -> list[torch.Tensor]:
    # Bags begin at random places, so that some are empty.
    cuts = torch.randint(ids + 1, (bags - 1,)).sort().values
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), cuts])
    return [torch.randint(table_rows, (ids,)), offsets, torch.rand(ids) + 0.5]


def get_init_inputs(table_rows: int = 4000, features: int = 64) -> list[int]:
    return [table_rows, features]
