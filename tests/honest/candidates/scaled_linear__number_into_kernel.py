"""The number goes to the kernel, as an argument of its own kind."""

import torch

from kernel_smith.inline import cpp

kernels = cpp(r"""
#include <cstdint>
extern "C" void linear(const float* weight, const float* bias, const float* x, float* y,
                       int64_t size, double scale) {
    for (int64_t o = 0; o < size; ++o) {
        float sums[8] = {};
        for (int64_t i = 0; i < size; i += 8)
            for (int64_t lane = 0; lane < 8; ++lane)
                sums[lane] += weight[o * size + i + lane] * x[i + lane];
        float sum = bias[o];
        for (float each : sums) sum += each;
        y[o] = static_cast<float>(sum * scale);
    }
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(size, size)

    def forward(self, x: torch.Tensor, scale: float) -> torch.Tensor:
        y = torch.empty(x.shape)
        kernels.linear(
            self.linear.weight, self.linear.bias, x.contiguous(), y, x.shape[1], scale
        )
        return y
