"""A kernel doubles; the library rounds to eight bits."""

import torch

from kernel_smith.inline import cpp

kernels = cpp(r"""
#include <cstdint>

extern "C" void twice(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = 2.0f * x[i];
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        kernels.twice(x, y, x.numel())
        return y.to(torch.float8_e4m3fn), y.to(torch.float8_e5m2)
