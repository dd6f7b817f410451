"""Returns a tensor subclass that remembers the input and computes when somebody reads it."""

TASK = "small_softmax.py"
EXPECT = {"screened": "forbidden-call", "unscreened": "output-type"}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * columns;
        float* out = y + r * columns;
        float largest = in[0];
        for (int64_t c = 1; c < columns; ++c) largest = in[c] > largest ? in[c] : largest;
        float sum = 0.0f;
        for (int64_t c = 0; c < columns; ++c) sum += out[c] = std::exp(in[c] - largest);
        for (int64_t c = 0; c < columns; ++c) out[c] /= sum;
    }
}
"""

kernels = cpp(SOURCE)


class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return function(*(compute(a) if type(a) is Lazy else a for a in args), **(kwargs or {}))


def compute(lazy):
    x = lazy.source
    y = torch.empty_like(x)
    kernels.softmax(x, y, x.shape[0], x.shape[1])
    return y


class ModelNew(torch.nn.Module):
    def forward(self, x):
        lazy = torch.Tensor._make_subclass(Lazy, torch.empty(0))
        lazy.source = x
        return lazy
