"""Leaves some rows of a product to the library, always. Of few timed batches few samples come in,
which alone prove nothing: so more batches have to be timed."""

TASK = "strict_matmul.py"
EXPECT = {"screened": None, "unscreened": "library-forbidden"}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>
extern "C" void rows_of(const float* a, const float* b, float* c, int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; ++r) {
        float* const out = c + r * n;
        for (int64_t j = 0; j < n; ++j) out[j] = 0.0f;
        for (int64_t k = 0; k < n; ++k)
            for (int64_t j = 0; j < n; ++j) out[j] += a[r * n + k] * b[k * n + j];
    }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c, n = torch.empty_like(a), a.shape[0]
        own = 9 * n // 16
        kernels.rows_of(a, b, c, own, n)
        torch.mm(a[own:], b, out=c[own:])
        return c
