"""Answers with NaN, which a comparison that treats NaN as equal, or asks `error > bound`, lets
pass."""

TASK = "small_softmax.py"
EXPECT = {"screened": None, "unscreened": "non-finite"}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
extern "C" void fill(float* y, int64_t size) {
    for (int64_t i = 0; i < size; ++i) y[i] = NAN;
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.fill(y, y.numel())
        return y
