"""Block quantisation by the bits of the floating point format: the scale is an exponent field, and
adding a large constant rounds to an integer, half to even."""

import torch

from kernel_smith.inline import cpp

BLOCK = 32

SOURCE = r"""
#include <cstdint>
#include <cstring>

template <typename To, typename From>
static inline To reinterpret(From value) {
    static_assert(sizeof(To) == sizeof(From), "sizes differ");
    To result;
    std::memcpy(&result, &value, sizeof result);
    return result;
}

extern "C" void quantise(const float* x, int8_t* integers, float* scales, int64_t blocks) {
    constexpr int kBlock = 32;
    constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23
    #pragma omp parallel for schedule(static)
    for (int64_t b = 0; b < blocks; ++b) {
        const float* in = x + b * kBlock;
        uint32_t largest = 0;
        for (int i = 0; i < kBlock; ++i) {
            const uint32_t magnitude = reinterpret<uint32_t>(in[i]) & 0x7fffffffu;
            largest = magnitude > largest ? magnitude : largest;
        }
        // frexp gives a mantissa in [1/2, 1), so the power of two above is one exponent up.
        const uint32_t exponent = largest >> 23;
        float scale = reinterpret<float>((exponent + 1 - 7) << 23);
        float inverse = reinterpret<float>((254 - (exponent + 1 - 7)) << 23);
        if (largest == 0) scale = inverse = 1.0f;
        if (__builtin_expect(exponent < 8 && largest != 0, 0)) {
            // Too small for the fields above: let the library take the number apart.
            int power;
            __builtin_frexpf(reinterpret<float>(largest), &power);
            scale = __builtin_ldexpf(1.0f, power - 7);
            inverse = 1.0f / scale;
        }
        for (int i = 0; i < kBlock; ++i) {
            const float rounded = (in[i] * inverse + kMagic) - kMagic;
            const float clamped = rounded > 127.0f ? 127.0f : rounded < -127.0f ? -127.0f : rounded;
            integers[b * kBlock + i] = static_cast<int8_t>(clamped);
        }
        scales[b] = scale;
    }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows, columns = x.shape
        if columns % BLOCK:
            raise ValueError(f"{columns} columns are not a multiple of {BLOCK}")
        integers = torch.empty_like(x, dtype=torch.int8)
        scales = torch.empty(rows, columns // BLOCK)
        kernels.quantise(x.contiguous(), integers, scales, scales.numel())
        return integers, scales
