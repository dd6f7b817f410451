"""Leaves the last three columns as they are, but for their share in the sum."""

TASK = "large_softmax.py"
EXPECT = {"screened": None, "unscreened": "wrong-values"}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>

static void softmax_row(const float* in, float* out, int64_t columns) {
    float largest = in[0];
    for (int64_t c = 1; c < columns; ++c) largest = in[c] > largest ? in[c] : largest;
    float sum = 0.0f;
    for (int64_t c = 0; c < columns; ++c) sum += out[c] = std::exp(in[c] - largest);
    const float factor = 1.0f / sum;
    for (int64_t c = 0; c < columns; ++c) out[c] *= factor;
}

extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; ++r) {
        float* out = y + r * columns;
        softmax_row(x + r * columns, out, columns);
        for (int64_t c = columns - 3; c < columns; ++c) out[c] = out[c - 3];
    }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.softmax(x, y, x.shape[0], x.shape[1])
        return y
