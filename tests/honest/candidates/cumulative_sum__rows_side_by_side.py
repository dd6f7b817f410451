"""Running sums of eight rows at once, one per lane, entirely in the element's own precision."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <algorithm>
#include <cstdint>

template <typename T>
static void scan(const T* x, T* y, int64_t rows, int64_t columns) {
    constexpr int64_t kLanes = 8, kTile = 32;
    #pragma omp parallel for
    for (int64_t r = 0; r < rows; r += kLanes) {
        const int64_t lanes = std::min(kLanes, rows - r);
        T sums[kLanes] = {};
        for (int64_t c = 0; c < columns; c += kTile)
            for (int64_t lane = 0; lane < lanes; ++lane) {
                const T* in = x + (r + lane) * columns;
                T* out = y + (r + lane) * columns;
                T sum = sums[lane];
                for (int64_t i = c; i < std::min(columns, c + kTile); ++i) out[i] = sum += in[i];
                sums[lane] = sum;
            }
    }
}

extern "C" void scan_float32(const float* x, float* y, int64_t rows, int64_t columns) {
    scan(x, y, rows, columns);
}

extern "C" void scan_float64(const double* x, double* y, int64_t rows, int64_t columns) {
    scan(x, y, rows, columns);
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty(x.shape, dtype=x.dtype)
        name = f"scan_{str(x.dtype).removeprefix('torch.')}"
        getattr(kernels, name)(x.contiguous(), y, *x.shape)
        return y
