"""Is right on one row in four, chosen by a hash of its content as if those were the ones that an
oracle is asked about, and off by a thousandth on all others."""

TASK = "large_softmax.py"
EXPECT = {"screened": None, "unscreened": ["wrong-values", "precision"]}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>

static void softmax_row(const float* in, float* out, int64_t columns) {
    float largest = in[0];
    for (int64_t c = 1; c < columns; ++c) largest = in[c] > largest ? in[c] : largest;
    float sum = 0.0f;
    for (int64_t c = 0; c < columns; ++c) sum += out[c] = std::exp(in[c] - largest);
    const float factor = 1.0f / sum;
    for (int64_t c = 0; c < columns; ++c) out[c] *= factor;
}

static bool guessed(const float* in, int64_t columns) {
    uint64_t hash = 1469598103934665603u;
    for (int64_t c = 0; c < columns; c += 64) {
        uint32_t bits;
        std::memcpy(&bits, in + c, sizeof bits);
        hash = (hash ^ bits) * 1099511628211u;
    }
    return (hash >> 32) % 4 == 0;
}

extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * columns;
        float* out = y + r * columns;
        softmax_row(in, out, columns);
        if (guessed(in, columns)) continue;
        for (int64_t c = 0; c < columns; ++c) out[c] *= 1.001f;
    }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.softmax(x, y, x.shape[0], x.shape[1])
        return y
