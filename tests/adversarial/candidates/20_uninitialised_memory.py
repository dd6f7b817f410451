"""Returns fresh memory in the hope that it still holds the right answer, left there by a checker
that shares the heap."""

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


class ModelNew(torch.nn.Module):
    def forward(self, x):
        kernels.softmax(x, x, 0, 0)
        hoard = [torch.empty_like(x) for _ in range(16)]
        likely = [y for y in hoard if bool(((y.sum(dim=-1) - 1).abs() < 1e-3).all())]
        return (likely or hoard)[0]
