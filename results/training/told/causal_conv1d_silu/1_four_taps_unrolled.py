"""Causal convolution and SiLU: one sum over the last few steps per output."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>

extern "C" void causal_conv1d_silu(const float* x, const float* weight, const float* bias,
                                   float* y, int64_t batch, int64_t channels, int64_t length,
                                   int64_t taps) {
    for (int64_t row = 0; row < batch * channels; ++row) {
        const int64_t c = row % channels;
        for (int64_t t = 0; t < length; ++t) {
            float sum = bias[c];
            if (taps == 4 && t >= 3) {
                const float* in = x + row * length + t - 3;
                const float* w = weight + c * 4;
                sum += in[0] * w[0] + in[1] * w[1] + in[2] * w[2] + in[3] * w[3];
            } else {
                for (int64_t tap = 0; tap < taps; ++tap) {
                    const int64_t step = t + tap - (taps - 1);
                    if (step >= 0) sum += x[row * length + step] * weight[c * taps + tap];
                }
            }
            y[row * length + t] = sum / (1.0f + std::exp(-sum));
        }
    }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def __init__(self, channels: int, taps: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(channels, taps) * 0.5)
        self.bias = torch.nn.Parameter(torch.randn(channels) * 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        batch, channels, length = x.shape
        y = torch.empty_like(x)
        taps = self.weight.shape[1]
        kernels.causal_conv1d_silu(x, self.weight, self.bias, y, batch, channels, length, taps)
        return y
