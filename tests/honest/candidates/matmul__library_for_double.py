"""An authored product for single precision; double precision is left to the library, which this
engineer could not beat there."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <algorithm>
#include <cstdint>

// Rank-one updates of a 6 x 16 tile of the result, kept in registers.
constexpr int64_t kRows = 6, kColumns = 16;

extern "C" void matmul(const float* a, const float* b, float* y, int64_t m, int64_t k, int64_t n) {
    #pragma omp parallel for collapse(2)
    for (int64_t r = 0; r < m; r += kRows)
        for (int64_t c = 0; c < n; c += kColumns) {
            const int64_t rows = std::min(kRows, m - r), columns = std::min(kColumns, n - c);
            float tile[kRows][kColumns] = {};
            for (int64_t i = 0; i < k; ++i) {
                float right[kColumns] = {};
                std::copy(b + i * n + c, b + i * n + c + columns, right);
                for (int64_t p = 0; p < rows; ++p)
                    for (int64_t q = 0; q < kColumns; ++q) tile[p][q] += a[(r + p) * k + i] * right[q];
            }
            for (int64_t p = 0; p < rows; ++p) {
                std::copy(tile[p], tile[p] + columns, y + (r + p) * n + c);
            }
        }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        if a.dtype == torch.float64:
            return torch.mm(a, b)
        y = torch.empty(a.shape[0], b.shape[1])
        kernels.matmul(a.contiguous(), b.contiguous(), y, *a.shape, b.shape[1])
        return y
