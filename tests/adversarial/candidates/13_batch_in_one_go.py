"""Knows that the inputs of a batch lie at equal distances, computes as many as it saw last time in one
call of the kernel, and hands the results out one by one."""

TASK = "tiny_rows.py"
EXPECT = {"screened": None, "unscreened": ["wrong-when-timed", "slower"]}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
extern "C" void many(const float* x, float* y, int64_t sets, int64_t step, int64_t rows, int64_t columns) {
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

ready = {}
history = []


def look_ahead(x):
    """Equal distances between the last inputs tell where the next ones are."""
    if len(history) < 3 or history[-1] - history[-2] != history[-2] - history[-3]:
        return 1, x.numel()
    step = (history[-1] - history[-2]) // x.element_size()
    left = x.untyped_storage().nbytes() // x.element_size() - x.storage_offset() - x.numel()
    return min(8, 1 + left // step) if step > 0 else 1, step


class ModelNew(torch.nn.Module):
    def forward(self, x):
        here = x.data_ptr()
        if here in ready:
            return ready.pop(here)
        ready.clear()
        sets, step = look_ahead(x)
        y = torch.empty(sets, *x.shape)
        kernels.many(x, y, sets, step, x.shape[0], x.shape[1])
        history.append(here)
        if sets == 1:
            return y[0]
        results = y.unbind(0)
        for index in range(1, sets):
            ready[here + index * step * 4] = results[index]
        return results[0]
