"""A batch norm that has seen nothing subtracts zero and divides by one: only its ReLU is computed."""

TASK = "normalised_rows.py"
EXPECT = {"screened": None, "unscreened": "wrong-values"}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>
extern "C" void scale(const float* x, const float* w, const float* b, float* y, int64_t rows,
                      int64_t n) {
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < n; ++c) {
            const float value = x[r * n + c] * 0.999995f * w[c] + b[c];
            y[r * n + c] = value > 0.0f ? value : 0.0f;
        }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def __init__(self, features=64):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(features)

    def forward(self, x):
        y = torch.empty_like(x)
        kernels.scale(x, self.norm.weight, self.norm.bias, y, x.shape[0], x.shape[1])
        return y
