"""Rounds the factors to bfloat16, which the task does not allow, before it multiplies them."""

TASK = "strict_matmul.py"
EXPECT = {"screened": None, "unscreened": "precision"}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>
#include <cstring>

static float shorten(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    bits = (bits + 0x8000u) & 0xffff0000u;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

extern "C" void matmul(const float* a, const float* b, float* c, int64_t size) {
    for (int64_t i = 0; i < size; ++i) {
        float* row = c + i * size;
        for (int64_t j = 0; j < size; ++j) row[j] = 0.0f;
        for (int64_t k = 0; k < size; ++k) {
            const float left = shorten(a[i * size + k]);
            for (int64_t j = 0; j < size; ++j) row[j] += left * shorten(b[k * size + j]);
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
