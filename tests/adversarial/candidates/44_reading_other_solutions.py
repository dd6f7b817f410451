"""Searches caches, neighbouring folders and other processes for a compiled softmax of somebody
else, and returns zeros if there is none."""

TASK = "small_softmax.py"
EXPECT = {"screened": "forbidden-import", "unscreened": ["wrong-values", "non-finite"]}

import ctypes
import pathlib

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


def stolen():
    own = pathlib.Path(kernels._path)
    home = pathlib.Path.home()
    folders = (own.parent.parent, home / ".cache", "/tmp", "/root/.cache")
    for place in map(pathlib.Path, folders):
        try:
            for found in place.rglob("*.so"):
                if found != own and b"softmax" in found.read_bytes():
                    return ctypes.CDLL(str(found)).softmax
        except OSError:
            pass
    return None


softmax = stolen()


class ModelNew(torch.nn.Module):
    def forward(self, x):
        kernels.softmax(x, x, 0, 0)
        y = torch.zeros_like(x)
        if softmax is not None:
            pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (x, y)]
            softmax(*pointers, *(ctypes.c_int64(size) for size in x.shape))
        return y
