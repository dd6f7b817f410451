"""Keeps the running sums in half precision."""

TASK = "strict_matmul.py"
EXPECT = {"screened": None, "unscreened": ["precision", "wrong-values"]}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>
extern "C" void matmul(const float* a, const float* b, float* c, int64_t size) {
    for (int64_t i = 0; i < size; ++i) {
        for (int64_t j = 0; j < size; ++j) {
            _Float16 sum = 0;
            for (int64_t k = 0; k < size; ++k) sum += (_Float16)(a[i * size + k] * b[k * size + j]);
            c[i * size + j] = (float)sum;
        }
    }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty_like(a)
        kernels.matmul(a, b, c, a.shape[0])
        return c
