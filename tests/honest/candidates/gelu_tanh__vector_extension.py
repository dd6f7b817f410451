"""GELU with the compiler's vector types and a rational form: y = x * sigmoid(2 u), which needs one
exponential and no tanh. One library per element type, chosen by a table."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from kernel_smith.inline import Library, cpp

COMMON = r"""
#include <cstdint>
#include <cstring>

typedef float vec __attribute__((vector_size(32), aligned(4)));
typedef int32_t ivec __attribute__((vector_size(32), aligned(4)));

static inline vec exponential(vec x) {
    x = x > 88.0f ? vec{} + 88.0f : x;
    x = x < -87.0f ? vec{} - 87.0f : x;
    // Adding and subtracting 1.5 * 2^23 rounds to the nearest integer.
    const float magic = 12582912.0f;
    const vec n = (x * 1.44269504f + magic) - magic;
    const vec r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    vec p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    const ivec bits = (__builtin_convertvector(n, ivec) + 127) << 23;
    vec power;
    std::memcpy(&power, &bits, sizeof power);
    return p * power;
}

static inline vec gelu(vec x) {
    const vec u = 1.5957691216f * (x + 0.044715f * x * x * x);  // twice the argument of tanh
    return x / (1.0f + exponential(-u));
}
"""

FLOAT32 = COMMON + r"""
extern "C" void gelu_all(const float* x, float* y, int64_t count) {
    const int64_t whole = count / 8 * 8;
    #pragma omp parallel for
    for (int64_t i = 0; i < whole; i += 8) {
        vec value;
        std::memcpy(&value, x + i, sizeof value);
        value = gelu(value);
        std::memcpy(y + i, &value, sizeof value);
    }
    for (int64_t i = whole; i < count; ++i) y[i] = gelu(vec{} + x[i])[0];
}
"""

BFLOAT16 = COMMON + r"""
static inline float widen(uint16_t half) {
    const uint32_t bits = static_cast<uint32_t>(half) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint16_t narrow(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

extern "C" void gelu_all(const uint16_t* x, uint16_t* y, int64_t count) {
    #pragma omp parallel for
    for (int64_t block = 0; block < (count + 7) / 8; ++block) {
        const int64_t filled = count - block * 8 < 8 ? count - block * 8 : 8;
        vec value{};
        for (int64_t i = 0; i < filled; ++i) value[i] = widen(x[block * 8 + i]);
        value = gelu(value);
        for (int64_t i = 0; i < filled; ++i) y[block * 8 + i] = narrow(value[i]);
    }
}
"""


@dataclass(frozen=True)
class Flavour:
    dtype: torch.dtype
    library: Library


FLAVOURS = {
    flavour.dtype: flavour
    for flavour in (
        Flavour(torch.float32, cpp(FLOAT32, ("-ffp-contract=fast",))),
        Flavour(torch.bfloat16, cpp(BFLOAT16)),
    )
}


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        y = torch.empty_like(x)
        FLAVOURS[x.dtype].library.gelu_all(x, y, x.numel())
        return y


if __name__ == "__main__":
    sample = torch.randn(37, 1531)
    expected = torch.nn.functional.gelu(sample, approximate="tanh")
    print("largest difference", (ModelNew()(sample) - expected).abs().max().item())
