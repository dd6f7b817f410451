"""SwiGLU with NEON or AVX2 intrinsics where the compiler has them, and plain loops elsewhere."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>
#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#endif

static inline float widen(uint16_t half) {
    uint32_t bits = static_cast<uint32_t>(half) << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

static inline uint16_t narrow(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    if (__builtin_expect(value != value, 0)) return 0x7fc0;
    return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static inline float silu(float x) { return x / (1.0f + std::exp(-x)); }

#if defined(__aarch64__)
#define WIDTH 4
static inline float32x4_t exponential(float32x4_t x) {
    x = vmaxq_f32(vminq_f32(x, vdupq_n_f32(88.0f)), vdupq_n_f32(-87.0f));
    const float32x4_t n = vrndnq_f32(vmulq_n_f32(x, 1.44269504f));
    float32x4_t r = vfmsq_n_f32(x, n, 0.693359375f);
    r = vfmaq_n_f32(r, n, 2.12194440e-4f);
    float32x4_t p = vdupq_n_f32(1.9875691500e-4f);
    p = vfmaq_f32(vdupq_n_f32(1.3981999507e-3f), p, r);
    p = vfmaq_f32(vdupq_n_f32(8.3334519073e-3f), p, r);
    p = vfmaq_f32(vdupq_n_f32(4.1665795894e-2f), p, r);
    p = vfmaq_f32(vdupq_n_f32(1.6666665459e-1f), p, r);
    p = vfmaq_f32(vdupq_n_f32(5.0000001201e-1f), p, r);
    p = vaddq_f32(vfmaq_f32(r, vmulq_f32(r, r), p), vdupq_n_f32(1.0f));
    const int32x4_t power = vshlq_n_s32(vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127)), 23);
    return vmulq_f32(p, vreinterpretq_f32_s32(power));
}
static inline void step(const float* gate, const float* up, float* out) {
    const float32x4_t g = vld1q_f32(gate);
    const float32x4_t below = vaddq_f32(vdupq_n_f32(1.0f), exponential(vnegq_f32(g)));
    vst1q_f32(out, vmulq_f32(vdivq_f32(g, below), vld1q_f32(up)));
}
#elif defined(__AVX2__) && defined(__FMA__)
#define WIDTH 8
static inline __m256 exponential(__m256 x) {
    x = _mm256_max_ps(_mm256_min_ps(x, _mm256_set1_ps(88.0f)), _mm256_set1_ps(-87.0f));
    const __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504f)), 8);
    __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693359375f), x);
    r = _mm256_fmadd_ps(n, _mm256_set1_ps(2.12194440e-4f), r);
    __m256 p = _mm256_set1_ps(1.9875691500e-4f);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.3981999507e-3f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(8.3334519073e-3f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(4.1665795894e-2f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.6666665459e-1f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(5.0000001201e-1f));
    p = _mm256_add_ps(_mm256_fmadd_ps(_mm256_mul_ps(r, r), p, r), _mm256_set1_ps(1.0f));
    const __m256i power = _mm256_slli_epi32(
        _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
    return _mm256_mul_ps(p, _mm256_castsi256_ps(power));
}
static inline void step(const float* gate, const float* up, float* out) {
    const __m256 g = _mm256_loadu_ps(gate);
    const __m256 minus = _mm256_sub_ps(_mm256_setzero_ps(), g);
    const __m256 below = _mm256_add_ps(_mm256_set1_ps(1.0f), exponential(minus));
    _mm256_storeu_ps(out, _mm256_mul_ps(_mm256_div_ps(g, below), _mm256_loadu_ps(up)));
}
#else
#define WIDTH 1
static inline void step(const float* gate, const float* up, float* out) {
    *out = silu(*gate) * *up;
}
#endif

extern "C" void swiglu_float32(const float* x, float* y, int64_t tokens, int64_t hidden) {
    #pragma omp parallel for schedule(static)
    for (int64_t t = 0; t < tokens; ++t) {
        const float* gates = x + 2 * t * hidden;
        float* out = y + t * hidden;
        int64_t h = 0;
        for (; h + WIDTH <= hidden; h += WIDTH) step(gates + h, gates + hidden + h, out + h);
        for (; h < hidden; ++h) out[h] = silu(gates[h]) * gates[hidden + h];
    }
}

extern "C" void swiglu_bfloat16(const uint16_t* x, uint16_t* y, int64_t tokens, int64_t hidden) {
    #pragma omp parallel for collapse(2) schedule(static)
    for (int64_t t = 0; t < tokens; ++t) {
        for (int64_t block = 0; block < (hidden + 63) / 64; ++block) {
            const int64_t first = block * 64;
            const int64_t count = hidden - first < 64 ? hidden - first : 64;
            float gates[64] = {}, ups[64] = {}, results[64];
            for (int64_t i = 0; i < count; ++i) {
                gates[i] = widen(x[2 * t * hidden + first + i]);
                ups[i] = widen(x[(2 * t + 1) * hidden + first + i]);
            }
            for (int64_t i = 0; i < 64; i += WIDTH) step(gates + i, ups + i, results + i);
            for (int64_t i = 0; i < count; ++i) y[t * hidden + first + i] = narrow(results[i]);
        }
    }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, gate_and_up: torch.Tensor) -> torch.Tensor:
        x = gate_and_up.contiguous()
        tokens, hidden = x.shape[0], x.shape[1] // 2
        y = torch.empty((tokens, hidden), dtype=x.dtype)
        match x.dtype:
            case torch.float32:
                kernels.swiglu_float32(x, y, tokens, hidden)
            case torch.bfloat16:
                kernels.swiglu_bfloat16(x, y, tokens, hidden)
            case other:
                raise TypeError(f"no kernel for {other}")
        return y
