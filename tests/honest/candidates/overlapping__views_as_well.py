"""The second result is a view of the first, as the reference's is."""

import torch

from kernel_smith.inline import cpp

kernels = cpp(r"""
#include <cstdint>
extern "C" void twice(const float* x, float* y, int64_t n) { for (int64_t i = 0; i < n; ++i) y[i] = x[i] > 0 ? 2 * x[i] : 0; }
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape)
        kernels.twice(x.contiguous(), y, x.numel())
        return y, y[1:5], y
