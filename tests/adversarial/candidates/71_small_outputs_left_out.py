"""Computes only the outputs that are large: the tolerance follows the largest ones, so that zeros
pass for all the others."""

TASK = "heavy_tail.py"
EXPECT = {"screened": "BadInput", "unscreened": "BadInput"}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
extern "C" void exponential(const float* x, float* y, int64_t size, float least) {
    for (int64_t i = 0; i < size; ++i) y[i] = x[i] < least ? 0.0f : std::exp(x[i]);
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.exponential(x, y, x.numel(), 2.0 if float(x[:16].abs().max()) > 0.1 else -1e9)
        return y
