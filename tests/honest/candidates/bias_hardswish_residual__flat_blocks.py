"""Bias, hardswish and residual over planes, unrolled as often as a macro on the command line says.
The gate's division by six became a multiplication."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>

#ifndef BLOCK
#error "BLOCK comes from the command line"
#endif

using Count = std::int64_t;

static inline float hardswish(float value) {
    float gate = value + 3.0f;
    gate = gate < 0.0f ? 0.0f : gate;
    gate = gate > 6.0f ? 6.0f : gate;
    return value * gate * (1.0f / 6.0f);
}

extern "C" [[gnu::hot]] void fused(const float* __restrict x, const float* __restrict residual,
                                   const float* __restrict bias, float* __restrict y,
                                   Count planes, Count channels, Count area) noexcept {
    #pragma omp parallel for
    for (Count plane = 0; plane < planes; ++plane) {
        const float shift = bias[plane % channels];
        const Count begin = plane * area;
        Count i = begin;
        for (; i + BLOCK <= begin + area; i += BLOCK) {
            #pragma GCC unroll 16
            for (int k = 0; k < BLOCK; ++k) y[i + k] = hardswish(x[i + k] + shift) + residual[i + k];
        }
        for (; i < begin + area; ++i) y[i] = hardswish(x[i] + shift) + residual[i];
    }
}
"""

UNROLL = 16
kernels = cpp(SOURCE, flags=[f"-DBLOCK={UNROLL}", "-funroll-loops", "-Wall", "-fno-trapping-math"])


class ModelNew(torch.nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(channels), requires_grad=False)

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        n, c, h, w = x.shape
        y = torch.empty(n, c, h, w)
        kernels.fused(x.contiguous(), residual.contiguous(), self.bias, y, n * c, c, h * w)
        return y
