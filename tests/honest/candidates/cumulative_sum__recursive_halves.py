"""Running sums by recursion: a row is two halves, the second starting from the sum of the first."""

import torch

from kernel_smith.inline import cpp

kernels = cpp(r"""
#include <cstdint>
#include <functional>

template <typename Element>
static double total(const Element* in, int64_t count) {
    if (count > 32) return total(in, count / 2) + total(in + count / 2, count - count / 2);
    double sum = 0.0;
    for (int64_t i = 0; i < count; ++i) sum += in[i];
    return sum;
}

template <typename Element>
static void scan(const Element* in, Element* out, int64_t count, double before) {
    if (count <= 32) {
        for (int64_t i = 0; i < count; ++i) out[i] = static_cast<Element>(before += in[i]);
        return;
    }
    const int64_t half = count / 2;
    scan(in, out, half, before);
    scan(in + half, out + half, count - half, before + total(in, half));
}

template <typename Element>
static void rows_of(const Element* x, Element* y, int64_t rows, int64_t columns) {
    std::function<void(int64_t, int64_t)> split = [&](int64_t first, int64_t last) {
        if (last - first > 1) {
            const int64_t middle = first + (last - first) / 2;
            #pragma omp task shared(split) firstprivate(first, middle)
            split(first, middle);
            split(middle, last);
            #pragma omp taskwait
        } else if (first < last) {
            scan(x + first * columns, y + first * columns, columns, 0.0);
        }
    };
    #pragma omp parallel
    #pragma omp single
    split(0, rows);
}

extern "C" void scan_float32(const float* x, float* y, int64_t rows, int64_t columns) {
    rows_of(x, y, rows, columns);
}

extern "C" void scan_float64(const double* x, double* y, int64_t rows, int64_t columns) {
    rows_of(x, y, rows, columns);
}
""")

BY_DTYPE = {torch.float32: kernels.scan_float32, torch.float64: kernels.scan_float64}


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x, memory_format=torch.contiguous_format)
        BY_DTYPE[x.dtype](x.contiguous(), y, *x.shape)
        return y
