"""Causal convolution as four shifted, scaled additions along time, fused with SiLU by strips that
stay in the first cache. The taps are spelled out; other numbers of them are refused."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <algorithm>
#include <cmath>
#include <cstdint>

extern "C" void conv_silu(const float* x, const float* weight, const float* bias, float* y,
                          int64_t rows, int64_t channels, int64_t length) {
    constexpr int64_t kStrip = 512;
    #pragma omp parallel for collapse(2)
    for (int64_t row = 0; row < rows; ++row)
        for (int64_t begin = 0; begin < length; begin += kStrip) {
            const int64_t end = std::min(length, begin + kStrip);
            const float* in = x + row * length;
            const float* w = weight + row % channels * 4;
            const float b = bias[row % channels];
            float* out = y + row * length;
            float strip[kStrip];
            for (int64_t t = begin; t < std::min<int64_t>(end, 3); ++t) {
                float sum = b + w[3] * in[t];
                if (t > 0) sum += w[2] * in[t - 1];
                if (t > 1) sum += w[1] * in[t - 2];
                strip[t - begin] = sum;
            }
            for (int64_t t = std::max<int64_t>(begin, 3); t < end; ++t) {
                strip[t - begin] = b + (w[0] * in[t - 3] + w[1] * in[t - 2]) +
                                   (w[2] * in[t - 1] + w[3] * in[t]);
            }
            for (int64_t t = begin; t < end; ++t) {
                out[t] = strip[t - begin] / (1.0f + std::exp(-strip[t - begin]));
            }
        }
}
"""

kernels = cpp(SOURCE, flags=("-ffast-math", "-fno-finite-math-only", "-fno-unsafe-math-optimizations"))


class ModelNew(torch.nn.Module):
    def __init__(self, channels: int, taps: int) -> None:
        super().__init__()
        if taps != 4:
            raise ValueError(f"written for 4 taps, not for {taps}")
        self.weight = torch.nn.Parameter(torch.randn(channels, taps) * 0.5)
        self.bias = torch.nn.Parameter(torch.randn(channels) * 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, channels, length = x.shape
        y = torch.empty(batch, channels, length)
        kernels.conv_silu(
            x.contiguous(), self.weight, self.bias, y, batch * channels, channels, length
        )
        return y
