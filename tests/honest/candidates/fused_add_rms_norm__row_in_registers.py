"""Residual addition and RMS normalisation: each token's sum stays in a thread's scratch row between
the two passes, and both results are halves of one allocation."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>

namespace detail {

inline float widen(float value) { return value; }
inline float widen(uint16_t half) {
    const uint32_t bits = uint32_t{half} << 16;
    float value;
    std::memcpy(&value, &bits, sizeof bits);
    return value;
}

template <typename Element> inline Element narrow(float value);
template <> inline float narrow<float>(float value) { return value; }
template <> inline uint16_t narrow<uint16_t>(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fc0;
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

struct Scratch {
    std::unique_ptr<float[]> memory;
    int64_t capacity = 0;
    float* at_least(int64_t count) {
        if (count > capacity) {
            memory = std::make_unique<float[]>(count);
            capacity = count;
        }
        return memory.get();
    }
};

template <typename Element>
void run(const Element* x, const Element* residual, const Element* weight, Element* normed,
         Element* total, int64_t tokens, int64_t hidden, float epsilon) {
    #pragma omp parallel for
    for (int64_t t = 0; t < tokens; ++t) {
        static thread_local Scratch scratch;
        float* row = scratch.at_least(hidden);
        const int64_t start = t * hidden;
        float squares[8] = {};
        for (int64_t h = 0; h < hidden; ++h) {
            // Rounded as it is stored: the norm is taken of the rounded sum.
            const Element sum = narrow<Element>(widen(x[start + h]) + widen(residual[start + h]));
            total[start + h] = sum;
            row[h] = widen(sum);
            squares[h & 7] += row[h] * row[h];
        }
        double all = 0.0;
        for (float part : squares) all += part;
        const float inverse = static_cast<float>(1.0 / std::sqrt(all / hidden + epsilon));
        for (int64_t h = 0; h < hidden; ++h) {
            normed[start + h] = narrow<Element>(row[h] * inverse * widen(weight[h]));
        }
    }
}

}  // namespace detail

extern "C" void add_rms_norm_float32(const float* x, const float* residual, const float* weight,
                                     float* normed, float* total, int64_t tokens, int64_t hidden,
                                     float epsilon) {
    detail::run(x, residual, weight, normed, total, tokens, hidden, epsilon);
}

extern "C" void add_rms_norm_bfloat16(const uint16_t* x, const uint16_t* residual,
                                      const uint16_t* weight, uint16_t* normed, uint16_t* total,
                                      int64_t tokens, int64_t hidden, float epsilon) {
    detail::run(x, residual, weight, normed, total, tokens, hidden, epsilon);
}
"""

kernels = cpp(SOURCE)
KERNELS = {
    torch.float32: kernels.add_rms_norm_float32,
    torch.bfloat16: kernels.add_rms_norm_bfloat16,
}


class ModelNew(torch.nn.Module):
    def __init__(self, hidden: int, dtype: str) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(1 + 0.3 * torch.randn(hidden, dtype=getattr(torch, dtype)))

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x, residual = x.contiguous(), residual.contiguous()
        tokens, hidden = x.shape
        both = torch.empty((2, tokens, hidden), dtype=x.dtype)
        normed, total = both[0], both[1]
        KERNELS[x.dtype](x, residual, self.weight, normed, total, tokens, hidden, 1e-6)
        return normed, total
