"""Scales the layer's weight in place, so that later calls need fewer products, and undoes it in
the result."""

TASK = "linear.py"
EXPECT = {"screened": None, "unscreened": "parameters-modified"}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>
extern "C" void linear(const float* x, float* w, const float* b, float* y, int64_t rows,
                       int64_t n) {
    for (int64_t i = 0; i < n * n; ++i) w[i] *= 0.5f;
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t o = 0; o < n; ++o) {
            float sum = 0.0f;
            for (int64_t i = 0; i < n; ++i) sum += x[r * n + i] * w[o * n + i];
            y[r * n + o] = sum * 2.0f + b[o];
        }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = torch.nn.Linear(size, size)

    def forward(self, x):
        y = torch.empty_like(x)
        kernels.linear(x, self.linear.weight, self.linear.bias, y, x.shape[0], x.shape[1])
        return y
