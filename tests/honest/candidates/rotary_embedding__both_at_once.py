"""Queries and keys in one launch over tokens; the two results come out of one allocation each by
dtype. bfloat16 is handled eight values at a time."""

import sys

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>
#include <cstring>

struct BFloat16 {
    uint16_t bits;
    operator float() const {
        const uint32_t wide = uint32_t(bits) << 16;
        float value;
        std::memcpy(&value, &wide, 4);
        return value;
    }
    BFloat16() = default;
    explicit BFloat16(float value) {
        uint32_t wide;
        std::memcpy(&wide, &value, 4);
        bits = static_cast<uint16_t>((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
    }
};

template <typename T>
static inline void turn(const T* in, const T* cosine, const T* sine, T* out, int64_t half) {
    #pragma omp simd
    for (int64_t f = 0; f < half; ++f) {
        const float c = cosine[f], s = sine[f], a = in[f], b = in[half + f];
        out[f] = T(a * c - b * s);
        out[half + f] = T(b * c + a * s);
    }
}

template <typename T>
static void rotate(const T* query, const T* key, const T* cosine, const T* sine, T* out_query,
                   T* out_key, int64_t tokens, int64_t query_heads, int64_t key_heads,
                   int64_t features) {
    const int64_t half = features / 2;
    #pragma omp parallel for
    for (int64_t t = tokens - 1; t >= 0; --t) {
        const T* c = cosine + t * half;
        const T* s = sine + t * half;
        for (int64_t h = 0; h < key_heads; ++h) {
            const int64_t at = (t * key_heads + h) * features;
            turn(key + at, c, s, out_key + at, half);
        }
        for (int64_t h = 0; h < query_heads; ++h) {
            const int64_t at = (t * query_heads + h) * features;
            turn(query + at, c, s, out_query + at, half);
        }
    }
}

extern "C" void rotate_float32(const float* query, const float* key, const float* cosine,
                               const float* sine, float* out_query, float* out_key,
                               int64_t tokens, int64_t query_heads, int64_t key_heads,
                               int64_t features) {
    rotate(query, key, cosine, sine, out_query, out_key, tokens, query_heads, key_heads, features);
}

extern "C" void rotate_bfloat16(const BFloat16* query, const BFloat16* key,
                                const BFloat16* cosine, const BFloat16* sine,
                                BFloat16* out_query, BFloat16* out_key, int64_t tokens,
                                int64_t query_heads, int64_t key_heads, int64_t features) {
    rotate(query, key, cosine, sine, out_query, out_key, tokens, query_heads, key_heads, features);
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(
        self, query: torch.Tensor, key: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        inputs = [tensor.contiguous() for tensor in (query, key, cosine, sine)]
        tokens, query_heads, features = query.shape
        if features % 16:
            print(f"{features} features leave a remainder after vectorising", file=sys.stderr)
        memory = torch.empty(query.numel() + key.numel(), dtype=query.dtype)
        turned_query = memory[: query.numel()].view(query.shape)
        turned_key = memory[query.numel() :].view(key.shape)
        bfloat16 = query.dtype == torch.bfloat16
        rotate = kernels.rotate_bfloat16 if bfloat16 else kernels.rotate_float32
        rotate(*inputs, turned_query, turned_key, tokens, query_heads, key.shape[1], features)
        return turned_query, turned_key
