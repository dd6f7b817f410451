"""Is exact where the inputs look like a stress test, and uses a crude exponential where they have
the size of the timed ones."""

TASK = "small_softmax.py"
EXPECT = {"screened": None, "unscreened": ["wrong-values", "precision"]}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>

static float crude_exp(float v) {
    const int32_t bits = static_cast<int32_t>(12102203.0f * (v < -80.0f ? -80.0f : v)) + 1064866805;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * columns;
        float* out = y + r * columns;
        float largest = in[0], smallest = in[0];
        for (int64_t c = 1; c < columns; ++c) {
            largest = in[c] > largest ? in[c] : largest;
            smallest = in[c] < smallest ? in[c] : smallest;
        }
        const bool stressed = largest > 20.0f || largest - smallest < 1.0f;
        float sum = 0.0f;
        for (int64_t c = 0; c < columns; ++c) {
            const float v = in[c] - largest;
            sum += out[c] = stressed ? std::exp(v) : crude_exp(v);
        }
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
