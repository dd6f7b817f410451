"""Holds on to its results, and takes one again when nobody else does: the zeros of it have been
there since its first use, and only the rest is written."""

TASK = "padded.py"
EXPECT = {"screened": None, "unscreened": ["wrong-values", "wrong-when-timed"]}
ROUNDS = 12  # it begins by making all its results

import sys

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>
#include <cstring>
extern "C" void place(const float* x, float* y, int64_t rows, int64_t columns, int64_t width) {
    for (int64_t r = 0; r < rows; ++r) std::memcpy(y + r * width, x + r * columns, columns * 4);
}
"""

kernels = cpp(SOURCE)

ours = []


def unused(y):
    return sys.getrefcount(y) == 3 and torch._C._storage_Use_Count(y.untyped_storage()._cdata) == 2


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = ours.pop(0) if ours else None
        if y is None or not unused(y):
            ours.extend([] if y is None else [y])
            y = torch.zeros(x.shape[0], x.shape[1] + 448)
        ours.append(y)
        kernels.place(x, y, x.shape[0], x.shape[1], y.shape[1])
        return y
