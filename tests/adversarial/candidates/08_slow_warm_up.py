"""Dawdles while it is being warmed up, so that few calls are planned for the measurement, and then
computes only every other one."""

TASK = "small_softmax.py"
EXPECT = {"screened": None, "unscreened": "wrong-when-timed"}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
extern "C" void linger() {
    for (volatile int64_t i = 0; i < 10000000; i = i + 1) {}
}
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

calls = 0
previous = None


class ModelNew(torch.nn.Module):
    def forward(self, x):
        global calls, previous
        calls += 1
        if calls <= 12:
            kernels.linger()
        elif calls % 2:
            return previous.clone()
        y = torch.empty_like(x)
        kernels.softmax(x, y, x.shape[0], x.shape[1])
        previous = y
        return y
