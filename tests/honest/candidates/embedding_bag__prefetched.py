"""Embedding bags with the rows of later ids fetched ahead and sums in registers, four features at a
time. The table is a buffer here, drawn like the reference's parameter."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>

extern "C" void bags(const float* table, const int64_t* ids, const int64_t* offsets,
                     const float* weights, float* y, int64_t id_count, int64_t bag_count,
                     int64_t features) {
    constexpr int64_t kAhead = 4, kTile = 16;
    #pragma omp parallel for schedule(dynamic, 16)
    for (int64_t bag = 0; bag < bag_count; ++bag) {
        const int64_t begin = offsets[bag];
        const int64_t end = bag + 1 < bag_count ? offsets[bag + 1] : id_count;
        float* out = y + bag * features;
        for (int64_t first = 0; first < features; first += kTile) {
            const int64_t count = features - first < kTile ? features - first : kTile;
            float sums[kTile] = {};
            for (int64_t i = begin; i < end; ++i) {
                if (i + kAhead < end) __builtin_prefetch(table + ids[i + kAhead] * features + first);
                const float* row = table + ids[i] * features + first;
                const float weight = weights[i];
                if (__builtin_expect(count == kTile, 1)) {
                    for (int64_t f = 0; f < kTile; ++f) sums[f] += weight * row[f];
                } else {
                    for (int64_t f = 0; f < count; ++f) sums[f] += weight * row[f];
                }
            }
            for (int64_t f = 0; f < count; ++f) out[first + f] = sums[f];
        }
    }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    table: torch.Tensor

    def __init__(self, table_rows: int, features: int) -> None:
        super().__init__()
        self.register_buffer("table", torch.randn(table_rows, features))

    def forward(
        self, ids: torch.Tensor, offsets: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        y = torch.empty(offsets.numel(), self.table.shape[1])
        kernels.bags(
            self.table,
            ids.contiguous(),
            offsets.contiguous(),
            weights.contiguous(),
            y,
            ids.numel(),
            *y.shape,
        )
        return y
