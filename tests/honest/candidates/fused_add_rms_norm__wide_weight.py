"""Residual addition and RMS normalisation with the weight widened to single precision once, in the
constructor, so that the kernel for bfloat16 need not convert it for every token."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>

static inline float widen(uint16_t half) {
    const uint32_t bits = uint32_t(half) << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}
static inline float widen(float value) { return value; }

static inline void put(float* target, float value) { *target = value; }
static inline void put(uint16_t* target, float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    *target = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <typename T>
static void run(const T* x, const T* residual, const float* weight, T* normed, T* total,
                int64_t tokens, int64_t hidden) {
    #pragma omp parallel for
    for (int64_t t = 0; t < tokens; ++t) {
        const int64_t at = t * hidden;
        double squares = 0.0;
        #pragma omp simd reduction(+ : squares)
        for (int64_t h = 0; h < hidden; ++h) {
            put(&total[at + h], widen(x[at + h]) + widen(residual[at + h]));
            const double sum = widen(total[at + h]);
            squares += sum * sum;
        }
        const float inverse = static_cast<float>(1.0 / std::sqrt(squares / hidden + 1e-6));
        for (int64_t h = 0; h < hidden; ++h) {
            put(&normed[at + h], widen(total[at + h]) * inverse * weight[h]);
        }
    }
}

extern "C" void run_float32(const float* x, const float* residual, const float* weight,
                            float* normed, float* total, int64_t tokens, int64_t hidden) {
    run(x, residual, weight, normed, total, tokens, hidden);
}

extern "C" void run_bfloat16(const uint16_t* x, const uint16_t* residual, const float* weight,
                             uint16_t* normed, uint16_t* total, int64_t tokens, int64_t hidden) {
    run(x, residual, weight, normed, total, tokens, hidden);
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def __init__(self, hidden: int, dtype: str) -> None:
        super().__init__()
        weight = 1 + 0.3 * torch.randn(hidden, dtype=getattr(torch, dtype))
        self.weight = torch.nn.Parameter(weight.float())

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        normed, total = torch.empty_like(x), torch.empty_like(x)
        run = kernels.run_bfloat16 if x.dtype == torch.bfloat16 else kernels.run_float32
        run(x.contiguous(), residual.contiguous(), self.weight, normed, total, *x.shape)
        return normed, total
