"""Embedding bags: row after row is added to the bag's result; an empty bag gives zeros."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>

extern "C" void embedding_bag(const float* table, const int64_t* ids, const int64_t* offsets,
                              const float* weights, float* y, int64_t id_count, int64_t bags,
                              int64_t features) {
    for (int64_t bag = 0; bag < bags; ++bag) {
        const int64_t end = bag + 1 < bags ? offsets[bag + 1] : id_count;
        float* sums = y + bag * features;
        for (int64_t f = 0; f < features; ++f) sums[f] = 0.0f;
        for (int64_t i = offsets[bag]; i < end; ++i) {
            const float weight = weights[i];
            const float* row = table + ids[i] * features;
            for (int64_t f = 0; f < features; ++f) sums[f] += weight * row[f];
        }
    }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def __init__(self, table_rows: int, features: int) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(table_rows, features))

    def forward(
        self, ids: torch.Tensor, offsets: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        ids, offsets, weights = ids.contiguous(), offsets.contiguous(), weights.contiguous()
        bags, features = offsets.shape[0], self.table.shape[1]
        y = torch.empty(bags, features)
        kernels.embedding_bag(self.table, ids, offsets, weights, y, ids.shape[0], bags, features)
        return y
