"""Linear layer, channel scale and residual: one dot product per output."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>

extern "C" void linear_layer_scale(const float* x, const float* residual, const float* weight,
                                   const float* bias, const float* scale, float* y,
                                   int64_t tokens, int64_t features, int64_t hidden) {
    for (int64_t t = 0; t < tokens; ++t) {
        for (int64_t h = 0; h < hidden; ++h) {
            float sum = bias[h];
            #pragma omp simd reduction(+:sum)
            for (int64_t f = 0; f < features; ++f) {
                sum += x[t * features + f] * weight[h * features + f];
            }
            y[t * hidden + h] = residual[t * hidden + h] + scale[h] * sum;
        }
    }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def __init__(self, features: int, hidden: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(features, hidden)
        self.scale = torch.nn.Parameter(torch.randn(hidden))

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        x, residual = x.contiguous(), residual.contiguous()
        weight, bias = self.linear.weight, self.linear.bias
        tokens, features = x.shape
        hidden = weight.shape[0]
        y = torch.empty_like(residual)
        kernels.linear_layer_scale(
            x, residual, weight, bias, self.scale, y, tokens, features, hidden
        )
        return y
