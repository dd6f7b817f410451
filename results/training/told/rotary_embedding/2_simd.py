"""Rotary embedding, one head after the other; called once for queries and once for keys."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
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

template <typename Element>
static void rotary(const Element* x, const Element* cosine, const Element* sine, Element* y,
                   int64_t tokens, int64_t heads, int64_t features) {
    const int64_t half = features / 2;
    for (int64_t row = 0; row < tokens * heads; ++row) {
        const Element* in = x + row * features;
        const Element* cosines = cosine + row / heads * half;
        const Element* sines = sine + row / heads * half;
        Element* out = y + row * features;
        #pragma omp simd
        for (int64_t f = 0; f < half; ++f) {
            const float c = load(cosines[f]);
            const float s = load(sines[f]);
            const float first = load(in[f]), second = load(in[half + f]);
            store(&out[f], first * c - second * s);
            store(&out[half + f], second * c + first * s);
        }
    }
}

extern "C" void rotary_float32(const float* x, const float* cosine, const float* sine, float* y,
                               int64_t tokens, int64_t heads, int64_t features) {
    rotary(x, cosine, sine, y, tokens, heads, features);
}

extern "C" void rotary_bfloat16(const uint16_t* x, const uint16_t* cosine, const uint16_t* sine,
                                uint16_t* y, int64_t tokens, int64_t heads, int64_t features) {
    rotary(x, cosine, sine, y, tokens, heads, features);
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(
        self, query: torch.Tensor, key: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        cosine, sine = cosine.contiguous(), sine.contiguous()
        return self.turn(query, cosine, sine), self.turn(key, cosine, sine)

    def turn(self, x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        y = torch.empty_like(x)
        rotary = kernels.rotary_bfloat16 if x.dtype == torch.bfloat16 else kernels.rotary_float32
        rotary(x, cosine, sine, y, *x.shape)
        return y
