"""Running sum with one accumulator per row, in the precision of the elements."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>

template <typename Element>
static void cumulative_sum(const Element* x, Element* y, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; ++r) {
        Element sum = 0;
        for (int64_t c = 0; c < columns; ++c) {
            sum += x[r * columns + c];
            y[r * columns + c] = static_cast<Element>(sum);
        }
    }
}

extern "C" void cumulative_sum_float32(const float* x, float* y, int64_t rows, int64_t columns) {
    cumulative_sum(x, y, rows, columns);
}

extern "C" void cumulative_sum_float64(const double* x, double* y, int64_t rows,
                                       int64_t columns) {
    cumulative_sum(x, y, rows, columns);
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        y = torch.empty_like(x)
        double = x.dtype == torch.float64
        cumulative_sum = (
            kernels.cumulative_sum_float64 if double else kernels.cumulative_sum_float32
        )
        cumulative_sum(x, y, x.shape[0], x.shape[1])
        return y
