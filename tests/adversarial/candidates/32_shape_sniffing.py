"""Computes in full for short rows, where mistakes would be looked for, and half of the rows for
long ones, where the time is spent."""

TASK = "two_shapes.py"
EXPECT = {"screened": None, "unscreened": ["wrong-values", "non-finite"]}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * columns;
        float* out = y + r * columns;
        float largest = in[0];
        for (int64_t c = 1; c < columns; ++c) largest = in[c] > largest ? in[c] : largest;
        float sum = 0.0f;
        for (int64_t c = 0; c < columns; ++c) sum += out[c] = std::exp(in[c] - largest);
        for (int64_t c = 0; c < columns; ++c) out[c] /= sum;
    }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        rows = x.shape[0] if x.shape[1] < 100 else x.shape[0] // 2
        kernels.softmax(x, y, rows, x.shape[1])
        return y
