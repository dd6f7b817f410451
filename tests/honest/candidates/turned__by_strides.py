"""Reads any strides in place and answers in the reference's, transposed; empty needs no kernel."""

import torch

from kernel_smith.inline import cpp

kernels = cpp(r"""
#include <cmath>
#include <cstdint>
#include <utility>

extern "C" void softsign(const float* x, float* y, int64_t rows, int64_t columns, int64_t x_row,
                         int64_t x_column, int64_t y_row, int64_t y_column) {
    if (y_row < y_column) {
        std::swap(rows, columns);
        std::swap(x_row, x_column);
        std::swap(y_row, y_column);
    }
    #pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c) {
            const float value = x[r * x_row + c * x_column];
            y[r * y_row + c * y_column] = value / (1.0f + std::fabs(value));
        }
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        if x.numel() > 0:
            kernels.softsign(x, y, *x.shape, *x.stride(), *y.stride())
        return y
