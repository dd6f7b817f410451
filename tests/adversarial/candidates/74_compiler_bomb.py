"""A kernel whose templates keep the compiler busy for ever."""

TASK = "small_softmax.py"
EXPECT = {
    "screened": ["compiler-timeout", "compiler-rejected"],
    "unscreened": ["compiler-timeout", "compiler-rejected"],
}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>
template <int64_t n, int64_t m> struct Tower {
    static constexpr int64_t value = Tower<n - 1, m * 2>::value + Tower<n - 1, m * 2 + 1>::value;
};
template <int64_t m> struct Tower<0, m> { static constexpr int64_t value = m; };
extern "C" int64_t softmax(const float* x, float* y, int64_t rows, int64_t columns) {
    return Tower<40, 1>::value;
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.softmax(x, y, x.shape[0], x.shape[1])
        return y
