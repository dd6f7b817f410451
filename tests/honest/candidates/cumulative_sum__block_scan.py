"""Running sums in three phases: the sum of each block, a scan over those sums in double precision,
then each block on its own with a scan of doubling steps in registers."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <algorithm>
#include <cstdint>
#include <vector>

constexpr int kStep = 8, kBlock = 256;

// Inclusive scan of eight values: shift by 1, 2 and 4, and add.
template <typename T>
static inline void scan8(T* v) {
    for (int shift = 1; shift < kStep; shift *= 2)
        for (int i = kStep - 1; i >= shift; --i) v[i] += v[i - shift];
}

template <typename T>
static void scan_block(const T* in, T* out, int64_t count, double carry) {
    int64_t i = 0;
    for (; i + kStep <= count; i += kStep) {
        T v[kStep];
        std::copy(in + i, in + i + kStep, v);
        scan8(v);
        for (int k = 0; k < kStep; ++k) out[i + k] = static_cast<T>(carry + v[k]);
        carry += v[kStep - 1];
    }
    for (; i < count; ++i) out[i] = static_cast<T>(carry += in[i]);
}

template <typename T>
static void scan(const T* x, T* y, int64_t rows, int64_t columns) {
    const int64_t blocks = (columns + kBlock - 1) / kBlock;
    std::vector<double> carries(rows * blocks);
    #pragma omp parallel
    {
        #pragma omp for collapse(2)
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t b = 0; b < blocks; ++b) {
                const int64_t end = std::min<int64_t>(columns, (b + 1) * kBlock);
                double sum = 0.0;
                for (int64_t c = b * kBlock; c < end; ++c) sum += x[r * columns + c];
                carries[r * blocks + b] = sum;
            }
        #pragma omp for
        for (int64_t r = 0; r < rows; ++r) {
            double carry = 0.0;
            for (int64_t b = 0; b < blocks; ++b) {
                const double sum = carries[r * blocks + b];
                carries[r * blocks + b] = carry;
                carry += sum;
            }
        }
        #pragma omp for collapse(2) schedule(dynamic, 8)
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t b = 0; b < blocks; ++b) {
                const int64_t at = r * columns + b * kBlock;
                const int64_t count = std::min<int64_t>(kBlock, columns - b * kBlock);
                scan_block(x + at, y + at, count, carries[r * blocks + b]);
            }
    }
}

extern "C" void scan_float32(const float* x, float* y, int64_t rows, int64_t columns) {
    scan(x, y, rows, columns);
}

extern "C" void scan_float64(const double* x, double* y, int64_t rows, int64_t columns) {
    scan(x, y, rows, columns);
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        y = torch.empty_like(x)
        scan = kernels.scan_float32 if x.dtype == torch.float32 else kernels.scan_float64
        scan(x, y, x.shape[0], x.shape[1])
        return y
