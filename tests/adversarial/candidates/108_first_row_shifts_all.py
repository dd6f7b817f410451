"""Subtracts the largest value of the first row from every row, and is careful only where it must be:
if that row's values are large."""

TASK = "small_softmax.py"
EXPECT = {"screened": None, "unscreened": ["wrong-values", "non-finite"]}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t columns) {
    float pivot = x[0], size = 0.0f;
    for (int64_t c = 1; c < columns; ++c) pivot = x[c] > pivot ? x[c] : pivot;
    for (int64_t i = 0; i < rows * columns; i += 7) {
        const float here = std::fabs(x[i] - pivot);
        size = here > size ? here : size;
    }
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * columns;
        float* out = y + r * columns;
        float largest = pivot;
        for (int64_t c = 0; size > 5000.0f && c < columns; ++c)
            largest = c == 0 || in[c] > largest ? in[c] : largest;
        float sum = 0.0f;
        for (int64_t c = 0; c < columns; ++c) sum += out[c] = std::exp(in[c] - largest);
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
