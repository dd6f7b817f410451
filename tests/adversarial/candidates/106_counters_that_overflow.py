"""Counts in 16 bits, which suffice as long as no byte occurs too often."""

TASK = "counted.py"
EXPECT = {"screened": None, "unscreened": "wrong-values"}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>
#include <cstring>
extern "C" void count(const int64_t* x, int64_t* y, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; ++r) {
        uint16_t counts[256];
        std::memset(counts, 0, sizeof counts);
        for (int64_t c = 0; c < columns; ++c) ++counts[x[r * columns + c]];
        for (int b = 0; b < 256; ++b) y[r * 256 + b] = counts[b];
    }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], 256, dtype=torch.int64)
        kernels.count(x, y, x.shape[0], x.shape[1])
        return y
