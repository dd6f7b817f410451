"""Row-wise softmax, written so that the compiler turns every loop into vector code.

Against the suite's starting kernel: each row is copied to a small buffer once, the exponential is a
polynomial instead of a library call (accurate to about one unit in the last place), and it is
evaluated once per element instead of twice.

    kernel-smith evaluate row_softmax examples/row_softmax.py
"""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>
#include <cstring>
#include <vector>

static inline float from_bits(uint32_t bits) { float f; std::memcpy(&f, &bits, 4); return f; }
static inline uint32_t to_bits(float f) { uint32_t bits; std::memcpy(&bits, &f, 4); return bits; }

// exp(x) for x <= 0: 2^n times a polynomial in the rest.
static inline float exponential(float x) {
    x = x < -87.0f ? -87.0f : x;
    const float shifted = x * 1.44269504f + 12582912.0f;  // the low bits now hold round(x / ln 2)
    const float n = shifted - 12582912.0f;
    const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    return p * from_bits((to_bits(shifted) + 127u) << 23);
}

static inline float load(float value) { return value; }

// float16 to float32: shift into place, then correct the exponent's bias by multiplication.
static inline float load(uint16_t half) {
    const float magnitude = from_bits(uint32_t(half & 0x7fff) << 13) * 0x1p112f;
    return from_bits(to_bits(magnitude) | uint32_t(half & 0x8000) << 16);
}

static inline void store(float& target, float value) { target = value; }

// float32 in [0, 1] to float16, rounded to nearest even.
static inline void store(uint16_t& target, float value) {
    const uint32_t bits = to_bits(value * 0x1p-112f);
    target = uint16_t((bits + 0xfff + ((bits >> 13) & 1)) >> 13);
}

template <typename Element>
static void softmax(const Element* x, Element* y, int64_t rows, int64_t columns) {
    #pragma omp parallel
    {
        std::vector<float> buffer(columns);
        float* row = buffer.data();
        #pragma omp for
        for (int64_t r = 0; r < rows; ++r) {
            const Element* in = x + r * columns;
            Element* out = y + r * columns;
            float largest = load(in[0]);
            #pragma omp simd reduction(max : largest)
            for (int64_t c = 0; c < columns; ++c) {
                row[c] = load(in[c]);
                largest = row[c] > largest ? row[c] : largest;
            }
            float sum = 0.0f;
            #pragma omp simd reduction(+ : sum)
            for (int64_t c = 0; c < columns; ++c) {
                row[c] = exponential(row[c] - largest);
                sum += row[c];
            }
            const float inverse = 1.0f / sum;
            #pragma omp simd
            for (int64_t c = 0; c < columns; ++c) store(out[c], row[c] * inverse);
        }
    }
}

extern "C" void softmax_float32(const float* x, float* y, int64_t rows, int64_t columns) {
    softmax(x, y, rows, columns);
}

extern "C" void softmax_float16(const uint16_t* x, uint16_t* y, int64_t rows, int64_t columns) {
    softmax(x, y, rows, columns);
}
"""

# Without the flag the clamp in `exponential` stays a branch, and the loop scalar.
kernels = cpp(SOURCE, flags=("-fno-trapping-math",))


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        y = torch.empty_like(x)
        softmax = kernels.softmax_float16 if x.dtype == torch.float16 else kernels.softmax_float32
        softmax(x, y, x.shape[0], x.shape[1])
        return y
