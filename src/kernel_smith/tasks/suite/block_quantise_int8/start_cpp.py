"""Block quantisation: the exponent of the largest value, then one rounding per value (half to
even)."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <algorithm>
#include <cmath>
#include <cstdint>

extern "C" void block_quantise(const float* x, int8_t* integers, float* scales, int64_t blocks,
                               int64_t block) {
    for (int64_t b = 0; b < blocks; ++b) {
        const float* in = x + b * block;
        float largest = 0.0f;
        for (int64_t i = 0; i < block; ++i) largest = std::max(largest, std::fabs(in[i]));
        int exponent;
        std::frexp(largest, &exponent);
        const float scale = largest > 0.0f ? std::ldexp(1.0f, exponent - 7) : 1.0f;
        for (int64_t i = 0; i < block; ++i) {
            const float rounded = std::nearbyint(in[i] / scale);
            integers[b * block + i] =
                static_cast<int8_t>(std::min(std::max(rounded, -127.0f), 127.0f));
        }
        scales[b] = scale;
    }
}
"""

kernels = cpp(SOURCE)

BLOCK = 32


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = x.contiguous()
        rows, columns = x.shape
        integers = torch.empty(rows, columns, dtype=torch.int8)
        scales = torch.empty(rows, columns // BLOCK)
        kernels.block_quantise(x, integers, scales, scales.numel(), BLOCK)
        return integers, scales
