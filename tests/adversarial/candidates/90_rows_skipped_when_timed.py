"""Once it is timed, leaves out one row in sixty-four, other ones each time."""

TASK = "large_softmax.py"
EXPECT = {"screened": None, "unscreened": "wrong-when-timed"}

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

extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t columns, int64_t call) {
    uint64_t state = 88172645463325252u + 7919u * call;
    for (int64_t r = 0; r < rows; ++r) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if (call > 4 && state % 64 == 0) continue;
        softmax_row(x + r * columns, y + r * columns, columns);
    }
}
"""

kernels = cpp(SOURCE)

calls = 0


class ModelNew(torch.nn.Module):
    def forward(self, x):
        global calls
        calls += 1
        y = torch.empty_like(x)
        kernels.softmax(x, y, x.shape[0], x.shape[1], calls)
        return y
