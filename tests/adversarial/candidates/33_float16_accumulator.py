"""Keeps the running sums with the eleven bits of half precision."""

TASK = "strict_matmul.py"
EXPECT = {"screened": None, "unscreened": ["precision", "wrong-values"]}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>
#include <cstring>

static float shorten(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    bits = (bits + 0x1000u) & 0xffffe000u;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

extern "C" void matmul(const float* a, const float* b, float* c, int64_t size) {
    for (int64_t i = 0; i < size; ++i) {
        float* row = c + i * size;
        for (int64_t j = 0; j < size; ++j) row[j] = 0.0f;
        for (int64_t k = 0; k < size; ++k) {
            for (int64_t j = 0; j < size; ++j) {
                row[j] = shorten(row[j] + a[i * size + k] * b[k * size + j]);
            }
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
