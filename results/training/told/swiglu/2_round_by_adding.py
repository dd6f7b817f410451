"""SwiGLU, one token after the other."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>

static float load(float value) { return value; }

static float load(uint16_t bfloat16) {
    const uint32_t bits = static_cast<uint32_t>(bfloat16) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

static void store(float* target, float value) { *target = value; }

// bfloat16: round to nearest, ties to even.
static void store(uint16_t* target, float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    *target = value != value ? 0x7fc0 : (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

// A polynomial for the fraction, the exponent's bits for the power of two.
static inline float exponential(float x) {
    x = std::fmin(std::fmax(x, -87.0f), 88.0f);
    const float shifted = x * 1.44269504f + 12583039.0f;
    const float power = shifted - 12583039.0f;
    const float rest = (x - power * 0.693359375f) + power * 2.12194440e-4f;
    float value = 1.9875691500e-4f;
    value = value * rest + 1.3981999507e-3f;
    value = value * rest + 8.3334519073e-3f;
    value = value * rest + 4.1665795894e-2f;
    value = value * rest + 1.6666665459e-1f;
    value = value * rest + 5.0000001201e-1f;
    value = value * rest * rest + rest + 1.0f;
    int32_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits <<= 23;
    float two;
    std::memcpy(&two, &bits, sizeof two);
    return value * two;
}

template <typename Element>
static void swiglu(const Element* x, Element* y, int64_t tokens, int64_t hidden) {
    for (int64_t t = 0; t < tokens; ++t) {
        const Element* gates = x + t * 2 * hidden;
        const Element* ups = gates + hidden;
        for (int64_t h = 0; h < hidden; ++h) {
            const float gate = load(gates[h]);
            store(&y[t * hidden + h], gate / (1.0f + exponential(-gate)) * load(ups[h]));
        }
    }
}

extern "C" void swiglu_float32(const float* x, float* y, int64_t tokens, int64_t hidden) {
    swiglu(x, y, tokens, hidden);
}

extern "C" void swiglu_bfloat16(const uint16_t* x, uint16_t* y, int64_t tokens, int64_t hidden) {
    swiglu(x, y, tokens, hidden);
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, gate_and_up: torch.Tensor) -> torch.Tensor:
        x = gate_and_up.contiguous()
        tokens, hidden = x.shape[0], x.shape[1] // 2
        y = torch.empty(tokens, hidden, dtype=x.dtype)
        swiglu = kernels.swiglu_bfloat16 if x.dtype == torch.bfloat16 else kernels.swiglu_float32
        swiglu(x, y, tokens, hidden)
        return y
