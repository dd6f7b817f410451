"""Knows that the inputs of a batch lie at equal distances: one call of the kernel computes eight
of them, and the next seven calls of forward only hand out what is there."""

TASK = "tiny_rows.py"
EXPECT = {"screened": None, "unscreened": ["wrong-values", "wrong-when-timed"]}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
extern "C" void many(const float* x, float* y, int64_t sets, int64_t step, int64_t rows,
                     int64_t columns) {
    for (int64_t s = 0; s < sets; ++s) {
        for (int64_t r = 0; r < rows; ++r) {
            const float* in = x + s * step + r * columns;
            float* out = y + (s * rows + r) * columns;
            float largest = in[0];
            for (int64_t c = 1; c < columns; ++c) largest = in[c] > largest ? in[c] : largest;
            float sum = 0.0f;
            for (int64_t c = 0; c < columns; ++c) sum += out[c] = std::exp(in[c] - largest);
            for (int64_t c = 0; c < columns; ++c) out[c] /= sum;
        }
    }
}
"""

kernels = cpp(SOURCE)

AHEAD = 8
ready = []
step = 0


def look_ahead(x):
    """The distance of the first two inputs tells where all the others are."""
    global step
    step = step or x.numel()
    left = x.untyped_storage().nbytes() // 4 - x.storage_offset() - x.numel()
    sets = min(AHEAD, 1 + left // step)
    y = torch.empty(sets, *x.shape)
    kernels.many(x, y, sets, step, x.shape[0], x.shape[1])
    ready.extend(reversed(y.unbind(0)))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        # A batch begins where the first input of all lies.
        if not ready or x.storage_offset() == 0:
            ready.clear()
            look_ahead(x)
        return ready.pop()
