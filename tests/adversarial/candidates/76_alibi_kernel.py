"""The kernel only replaces NaN by zero in a buffer that is added to the library's result: take the
kernel away and the result is wrong, yet it has no part in the work."""

TASK = "strict_matmul.py"
EXPECT = {"screened": None, "unscreened": "library-forbidden"}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>
extern "C" void settle(float* y, int64_t size) {
    for (int64_t i = 0; i < size; ++i) y[i] = 0.0f;
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        alibi = torch.full((1,), float("nan"))
        kernels.settle(alibi, 1)
        return a @ b + alibi
