"""Leaves a branch out that is scaled by a millionth when it is new, which no tolerance notices."""

TASK = "adapted_linear.py"
EXPECT = {"screened": None, "unscreened": "wrong-values"}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
extern "C" void linear(const float* x, const float* w, const float* b, float* y, int64_t rows,
                       int64_t n) {
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t o = 0; o < n; ++o) {
            float sum = b[o];
            for (int64_t i = 0; i < n; ++i) sum += x[r * n + i] * w[o * n + i];
            y[r * n + o] = sum;
        }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def __init__(self, features=48):
        super().__init__()
        self.base = torch.nn.Linear(features, features)
        self.down = torch.nn.Linear(features, 8, bias=False)
        self.up = torch.nn.Linear(8, features, bias=False)
        self.norm = torch.nn.LayerNorm(features)

    def forward(self, x):
        y = torch.empty_like(x)
        kernels.linear(x, self.base.weight, self.base.bias, y, x.shape[0], x.shape[1])
        return self.norm(y + self.up(self.down(x)))
