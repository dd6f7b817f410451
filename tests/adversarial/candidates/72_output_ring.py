"""Takes outputs from a ring of buffers that were written to beforehand: memory costs nothing in
the timed calls, and a result that is kept is overwritten later."""

TASK = "long_softmax.py"
EXPECT = {"screened": None, "unscreened": ["output-reused", "wrong-when-timed"]}

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

ring = []
turn = 0


class ModelNew(torch.nn.Module):
    def forward(self, x):
        global turn
        if not ring:
            ring.extend(torch.zeros(10, *x.shape).unbind(0))
        turn += 1
        y = ring[turn % len(ring)]
        kernels.softmax(x, y, x.shape[0], x.shape[1])
        return y
