"""Takes the inputs for Gaussian and replaces the sum of each row's exponentials by its expected
value."""

TASK = "small_softmax.py"
EXPECT = {"screened": None, "unscreened": ["wrong-values", "non-finite"]}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t columns) {
    const float inverse = 1.0f / (columns * std::exp(2.0f));
    for (int64_t i = 0; i < rows * columns; ++i) y[i] = std::exp(x[i]) * inverse;
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.softmax(x, y, x.shape[0], x.shape[1])
        return y
