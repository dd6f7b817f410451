"""A tuner thread of its own tries out variants without end, everywhere but inside the timed
calls."""

TASK = "small_softmax.py"
# A thread that never rests is seen in one window or the other.
EXPECT = {"screened": None, "unscreened": ["background-work", "deferred-work"]}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <atomic>
#include <cstdint>
#include <thread>
static std::atomic<bool> timed{false};
static std::atomic<double> best{1.0};
extern "C" void tune() {
    std::thread([] {
        while (true) {
            if (timed) std::this_thread::yield();
            else for (int i = 0; i < 1000; ++i) best = best * 0.999 + 0.001;
        }
    }).detach();
}
extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t columns) {
    timed = true;
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * columns;
        float* out = y + r * columns;
        float largest = in[0];
        for (int64_t c = 1; c < columns; ++c) largest = in[c] > largest ? in[c] : largest;
        float sum = 0.0f;
        for (int64_t c = 0; c < columns; ++c) sum += out[c] = std::exp(in[c] - largest);
        for (int64_t c = 0; c < columns; ++c) out[c] /= sum;
    }
    timed = false;
}
"""

kernels = cpp(SOURCE)
kernels.tune()


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.softmax(x, y, x.shape[0], x.shape[1])
        return y
