"""Clones of a function for several processors; the loader picks one through an indirect symbol."""

import torch

from kernel_smith.inline import cpp

kernels = cpp(r"""
#include <cstdint>
#include <vector>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CLONES
#endif

// Knuth's two-sum: what the addition rounds away is kept in a sum of its own.
static inline void add_row(const float* row, float* sums, float* lost, int64_t columns) {
    for (int64_t c = 0; c < columns; ++c) {
        const float total = sums[c] + row[c];
        const float added = total - sums[c];
        lost[c] += (sums[c] - (total - added)) + (row[c] - added);
        sums[c] = total;
    }
}

extern "C" CLONES void column_sum(const float* x, float* y, int64_t rows, int64_t columns) {
    std::vector<float> sums(columns), lost(columns);
    for (int64_t r = 0; r < rows; ++r) add_row(x + r * columns, sums.data(), lost.data(), columns);
    for (int64_t c = 0; c < columns; ++c) y[c] = sums[c] + lost[c];
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, gradient: torch.Tensor) -> torch.Tensor:
        rows, columns = gradient.shape
        y = gradient.new_empty(columns)
        kernels.column_sum(gradient.contiguous(), y, rows, columns)
        return y
