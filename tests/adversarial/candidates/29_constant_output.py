"""Returns the expected value of the result without looking at the input; the task's outputs vary
so little that the tolerance would accept it."""

TASK = "nearly_constant.py"
EXPECT = {"screened": "BadInput", "unscreened": "BadInput"}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>
extern "C" void fill(float* y, int64_t size, float value) {
    for (int64_t i = 0; i < size; ++i) y[i] = value;
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0])
        kernels.fill(y, y.numel(), 1001.0)
        return y
