"""Embedding bags: four rows at a time are added to the bag's result, while the rows of
later ids are fetched ahead; an empty bag gives zeros."""

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
        int64_t i = offsets[bag];
        for (; i + 4 <= end; i += 4) {
            for (int64_t ahead = i + 8; ahead < i + 12 && ahead < id_count; ++ahead) {
                for (int64_t f = 0; f < features; f += 16) {
                    __builtin_prefetch(table + ids[ahead] * features + f);
                }
            }
            const float w0 = weights[i], w1 = weights[i + 1];
            const float w2 = weights[i + 2], w3 = weights[i + 3];
            const float* row0 = table + ids[i] * features;
            const float* row1 = table + ids[i + 1] * features;
            const float* row2 = table + ids[i + 2] * features;
            const float* row3 = table + ids[i + 3] * features;
            #pragma omp simd
            for (int64_t f = 0; f < features; ++f) {
                sums[f] += w0 * row0[f] + w1 * row1[f] + w2 * row2[f] + w3 * row3[f];
            }
        }
        for (; i < end; ++i) {
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
