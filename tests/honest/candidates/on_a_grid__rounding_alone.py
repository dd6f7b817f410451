"""Leaves the sums to the library, and rounds by adding and subtracting a large number."""

import torch

from kernel_smith.inline import cpp

kernels = cpp(r"""
#include <cstdint>
extern "C" void round_to_grid(float* y, int64_t count) {
    const float large = 12582912.0f / 512.0f;  // its last bit is a step
    for (int64_t i = 0; i < count; ++i) {
        const bool is_whole = y[i] >= 8192.0f || y[i] <= -8192.0f;
        volatile float moved = y[i] + large;
        y[i] = is_whole ? y[i] : moved - large;
    }
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.sum(-1)
        kernels.round_to_grid(y, y.numel())
        return y
