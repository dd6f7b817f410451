"""The library's matrix product, then bias and GELU in one authored pass over the fresh product, in
place. The parameters are taken out of the linear layer, so they have other names."""

import torch

from kernel_smith.inline import cpp

kernels = cpp(
    r"""
#include <cmath>
#include <cstdint>

extern "C" void bias_gelu(float* y, const float* bias, int64_t tokens, int64_t hidden) {
    #pragma omp parallel for
    for (int64_t t = 0; t < tokens; ++t) {
        for (int64_t h = 0; h < hidden; ++h) {
            const float value = y[t * hidden + h] + bias[h];
            y[t * hidden + h] = 0.5f * value * (1.0f + std::erf(value * 0.70710678f));
        }
    }
}
"""
)


class ModelNew(torch.nn.Module):
    def __init__(self, features: int, hidden: int) -> None:
        super().__init__()
        drawn = torch.nn.Linear(features, hidden)
        self.transposed = torch.nn.Parameter(drawn.weight.detach().t().contiguous())
        self.offset = torch.nn.Parameter(drawn.bias.detach().clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.mm(x, self.transposed)
        kernels.bias_gelu(y, self.offset, *y.shape)
        return y
