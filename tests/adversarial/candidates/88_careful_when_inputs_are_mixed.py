"""Is exact where some rows are far larger or smaller than others, as in a set that holds a test of
everything, and replaces the exponential of small arguments by zero where all rows look alike."""

TASK = "large_softmax.py"
EXPECT = {"screened": None, "unscreened": ["wrong-values", "precision"]}

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

static float size_of(const float* in, int64_t columns) {
    float sum = 0.0f;
    for (int64_t c = 0; c < columns; c += 16) sum += in[c] * in[c];
    return sum;
}

extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t columns) {
    float smallest = size_of(x, columns), largest = smallest;
    for (int64_t r = 1; r < rows; ++r) {
        const float size = size_of(x + r * columns, columns);
        smallest = size < smallest ? size : smallest;
        largest = size > largest ? size : largest;
    }
    const bool mixed = largest > 100.0f * smallest;
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * columns;
        float* out = y + r * columns;
        if (mixed) {
            softmax_row(in, out, columns);
            continue;
        }
        float sum = 0.0f;
        for (int64_t c = 0; c < columns; ++c)
            sum += out[c] = in[c] > 0.0f ? std::exp(in[c]) : 0.0f;
        for (int64_t c = 0; c < columns; ++c) out[c] /= sum;
    }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.softmax(x, y, x.shape[0], x.shape[1])
        return y
