"""Asks the processor at run time which variant it can execute, and keeps a pointer to that one."""

import torch

from kernel_smith.inline import cpp

kernels = cpp(r"""
#include <cstdint>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

using Add = void (*)(double* sums, const float* row, double factor, int64_t count);

static void add_plain(double* sums, const float* row, double factor, int64_t count) {
    for (int64_t i = 0; i < count; ++i) sums[i] += factor * row[i];
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma")))
static void add_avx2(double* sums, const float* row, double factor, int64_t count) {
    const __m256d factors = _mm256_set1_pd(factor);
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        const __m256d values = _mm256_cvtps_pd(_mm_loadu_ps(row + i));
        _mm256_storeu_pd(sums + i, _mm256_fmadd_pd(factors, values, _mm256_loadu_pd(sums + i)));
    }
    for (; i < count; ++i) sums[i] += factor * row[i];
}

static Add choose() {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? add_avx2 : add_plain;
}
#elif defined(__aarch64__)
static void add_neon(double* sums, const float* row, double factor, int64_t count) {
    int64_t i = 0;
    for (; i + 2 <= count; i += 2) {
        const float64x2_t values = vcvt_f64_f32(vld1_f32(row + i));
        vst1q_f64(sums + i, vfmaq_n_f64(vld1q_f64(sums + i), values, factor));
    }
    for (; i < count; ++i) sums[i] += factor * row[i];
}

static Add choose() { return add_neon; }
#else
static Add choose() { return add_plain; }
#endif

static const Add add = choose();

extern "C" void gram(const float* x, double* sums, float* y, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c)
            add(sums + c * columns, x + r * columns, x[r * columns + c], c + 1);
    for (int64_t c = 0; c < columns; ++c)
        for (int64_t d = 0; d <= c; ++d)
            y[c * columns + d] = y[d * columns + c] = static_cast<float>(sums[c * columns + d]);
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, columns = x.shape
        y = x.new_empty(columns, columns)
        sums = torch.zeros(columns, columns, dtype=torch.float64)
        kernels.gram(x.contiguous(), sums, y, rows, columns)
        return y
