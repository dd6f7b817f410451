"""Does the work of all batches in one of them, once, some time after it was checked."""

TASK = "small_softmax.py"
ROUNDS = 30
EXPECT = {"screened": None, "unscreened": "slower"}

import time

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
extern "C" void work_ahead(int64_t turns) {
    for (volatile int64_t i = 0; i < turns; i = i + 1) {}
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

kernels = cpp(SOURCE, flags=("-ffast-math",))

last, batches = 0.0, 0


class ModelNew(torch.nn.Module):
    def forward(self, x):
        global last, batches
        if time.perf_counter() - last > 1e-3:  # nobody called for a while: the batch is another one
            batches += 1
            if batches == 24:
                kernels.work_ahead(600_000_000)
        y = torch.empty_like(x)
        kernels.softmax(x, y, x.shape[0], x.shape[1])
        last = time.perf_counter()
        return y
