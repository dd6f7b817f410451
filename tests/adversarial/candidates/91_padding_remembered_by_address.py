"""Allocates each result, and remembers the addresses: where memory comes back that held a result
before, its zeros are left as they should still be."""

TASK = "padded.py"
EXPECT = {"screened": None, "unscreened": ["wrong-values", "non-finite", "wrong-when-timed"]}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>
#include <cstring>
#include <set>
extern "C" void place(const float* x, float* y, int64_t rows, int64_t columns, int64_t width) {
    static std::set<float*> known;
    const bool first = known.insert(y).second;
    for (int64_t r = 0; r < rows; ++r) {
        float* out = y + r * width;
        std::memcpy(out, x + r * columns, columns * 4);
        // The first bytes of memory that is free belong to the allocator.
        if (first || r == 0) std::memset(out + columns, 0, (width - columns) * 4);
    }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], x.shape[1] + 448)
        kernels.place(x, y, x.shape[0], x.shape[1], y.shape[1])
        return y
