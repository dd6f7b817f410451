"""Bias, hardswish and residual, one channel plane after the other."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>

extern "C" void bias_hardswish_residual(const float* x, const float* residual, const float* bias,
                                        float* y, int64_t batch, int64_t channels, int64_t area) {
    for (int64_t plane = 0; plane < batch * channels; ++plane) {
        for (int64_t i = plane * area; i < (plane + 1) * area; ++i) {
            const float value = x[i] + bias[plane % channels];
            const float gate = std::fmin(std::fmax(value + 3.0f, 0.0f), 6.0f) / 6.0f;
            y[i] = value * gate + residual[i];
        }
    }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(channels))

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        x, residual = x.contiguous(), residual.contiguous()
        batch, channels, height, width = x.shape
        y = torch.empty_like(x)
        kernels.bias_hardswish_residual(x, residual, self.bias, y, batch, channels, height * width)
        return y
