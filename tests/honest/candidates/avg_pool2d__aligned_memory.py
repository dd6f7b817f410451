"""Aligned memory of the kernel's own grows and stays; exceptions are caught and become numbers."""

import torch

from kernel_smith.inline import cpp

kernels = cpp(r"""
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>

struct Free { void operator()(double* memory) const { std::free(memory); } };

static thread_local std::unique_ptr<double, Free> kept;
static thread_local int64_t room = 0;

static double* scratch(int64_t count) {
    if (count <= 0) throw std::length_error("nothing to pool");
    if (count > room) {
        const size_t bytes = (count * sizeof(double) + 63) / 64 * 64;
        kept.reset(static_cast<double*>(std::aligned_alloc(64, bytes)));
        if (!kept) throw std::bad_alloc();
        room = count;
    }
    return kept.get();
}

static void plane(const float* in, float* out, int64_t height, int64_t width, int64_t stride) {
    double* sums = scratch(width);
    for (int64_t top = -1; top + 2 <= height; top += stride) {
        const int64_t first = std::max<int64_t>(top, 0), last = std::min(top + 3, height);
        std::fill(sums, sums + width, 0.0);
        for (int64_t r = first; r < last; ++r)
            for (int64_t c = 0; c < width; ++c) sums[c] += in[r * width + c];
        for (int64_t left = -1; left + 2 <= width; left += stride) {
            const int64_t begin = std::max<int64_t>(left, 0), end = std::min(left + 3, width);
            double sum = 0.0;
            for (int64_t c = begin; c < end; ++c) sum += sums[c];
            *out++ = static_cast<float>(sum / ((last - first) * (end - begin)));
        }
    }
}

extern "C" int pool(const float* x, float* y, int64_t planes, int64_t height, int64_t width,
                    int64_t stride, int64_t results) {
    try {
        for (int64_t p = 0; p < planes; ++p)
            plane(x + p * height * width, y + p * results, height, width, stride);
        return 0;
    } catch (const std::length_error&) {
        return 1;
    } catch (const std::exception&) {
        return 2;
    }
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, stride: int) -> None:
        super().__init__()
        self.stride = stride

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, channels, *size = x.shape
        rows, columns = ((length - 1) // self.stride + 1 for length in size)
        y = x.new_empty(batch, channels, rows, columns)
        planes = batch * channels
        code = kernels.pool(x.contiguous(), y, planes, *size, self.stride, rows * columns)
        if code:
            raise RuntimeError(f"pooling ended with {code}")
        return y
