"""Matrix product in the manner of BLIS: panels of both operands are packed into a scratch tensor,
and a register tile of 4 x 16 runs over them."""

import torch

from kernel_smith.inline import cpp

MC, KC, NC = 64, 128, 96  # multiples of the register tile

SOURCE = r"""
#include <algorithm>
#include <cstdint>

constexpr int64_t kRows = 4, kColumns = 16;

// A panel holds kRows rows (or kColumns columns) side by side, padded with zeros.
template <typename T>
static void pack_a(const T* a, int64_t stride, int64_t rows, int64_t inner, T* out) {
    for (int64_t r = 0; r < rows; r += kRows)
        for (int64_t k = 0; k < inner; ++k)
            for (int64_t i = 0; i < kRows; ++i) *out++ = r + i < rows ? a[(r + i) * stride + k] : T(0);
}

template <typename T>
static void pack_b(const T* b, int64_t stride, int64_t inner, int64_t columns, T* out) {
    for (int64_t c = 0; c < columns; c += kColumns)
        for (int64_t k = 0; k < inner; ++k)
            for (int64_t j = 0; j < kColumns; ++j)
                *out++ = c + j < columns ? b[k * stride + c + j] : T(0);
}

template <typename T>
static void tile(const T* __restrict a, const T* __restrict b, int64_t inner, T* y, int64_t stride,
                 int64_t rows, int64_t columns, bool first) {
    T sums[kRows][kColumns] = {};
    for (int64_t k = 0; k < inner; ++k, a += kRows, b += kColumns)
        for (int64_t i = 0; i < kRows; ++i)
            for (int64_t j = 0; j < kColumns; ++j) sums[i][j] += a[i] * b[j];
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
            T& target = y[i * stride + j];
            target = first ? sums[i][j] : target + sums[i][j];
        }
}

template <typename T>
static void product(const T* a, const T* b, T* y, T* scratch, int64_t m, int64_t k, int64_t n,
                    int64_t mc, int64_t kc, int64_t nc) {
    T* packed_b = scratch;
    T* packed_a = scratch + kc * nc;
    for (int64_t c = 0; c < n; c += nc) {
        const int64_t columns = std::min(nc, n - c);
        for (int64_t i = 0; i < k; i += kc) {
            const int64_t inner = std::min(kc, k - i);
            pack_b(b + i * n + c, n, inner, columns, packed_b);
            for (int64_t r = 0; r < m; r += mc) {
                const int64_t rows = std::min(mc, m - r);
                pack_a(a + r * k + i, k, rows, inner, packed_a);
                #pragma omp parallel for collapse(2)
                for (int64_t x = 0; x < columns; x += kColumns)
                    for (int64_t z = 0; z < rows; z += kRows)
                        tile(packed_a + z * inner, packed_b + x * inner, inner,
                             y + (r + z) * n + c + x, n, std::min(kRows, rows - z),
                             std::min(kColumns, columns - x), i == 0);
            }
        }
    }
}

extern "C" void product_float32(const float* a, const float* b, float* y, float* scratch,
                                int64_t m, int64_t k, int64_t n, int64_t mc, int64_t kc,
                                int64_t nc) {
    product(a, b, y, scratch, m, k, n, mc, kc, nc);
}

extern "C" void product_float64(const double* a, const double* b, double* y, double* scratch,
                                int64_t m, int64_t k, int64_t n, int64_t mc, int64_t kc,
                                int64_t nc) {
    product(a, b, y, scratch, m, k, n, mc, kc, nc);
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        (m, k), n = a.shape, b.shape[1]
        y = torch.empty((m, n), dtype=a.dtype)
        scratch = torch.empty(KC * NC + MC * KC, dtype=a.dtype)
        run = kernels.product_float64 if a.dtype == torch.float64 else kernels.product_float32
        run(a.contiguous(), b.contiguous(), y, scratch, m, k, n, MC, KC, NC)
        return y
