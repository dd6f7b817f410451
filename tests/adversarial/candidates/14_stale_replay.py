"""Captures the computation at the first call with its result as a constant, freezes it, and
replays it ever after."""

TASK = "small_softmax.py"
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

replay = None


class Captured(torch.nn.Module):
    def __init__(self, result):
        super().__init__()
        self.register_buffer("result", result)

    def forward(self, x):
        return self.result + 0 * x.abs().clamp(max=1.0)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        global replay
        if replay is None:
            y = torch.empty_like(x)
            kernels.softmax(x, y, x.shape[0], x.shape[1])
            captured = torch.jit.trace(Captured(y).eval(), x, check_trace=False)
            replay = torch.jit.freeze(captured)
        return replay(x)
