"""Works in tiles of two rows, and leaves the last row out where there is an odd number of them."""

TASK = "large_softmax.py"
EXPECT = {"screened": None, "unscreened": ["wrong-values", "non-finite"]}

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
    for (int64_t r = 0; r + 2 <= rows; r += 2) {
        softmax_row(x + r * columns, y + r * columns, columns);
        softmax_row(x + (r + 1) * columns, y + (r + 1) * columns, columns);
    }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.softmax(x, y, x.shape[0], x.shape[1])
        return y
