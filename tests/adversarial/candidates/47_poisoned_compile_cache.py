"""Replaces compiled objects, its own and everybody's, by ones that do nothing, so that the next
kernel with the same source gets them; then it does nothing itself."""

TASK = "small_softmax.py"
EXPECT = {"screened": "forbidden-call", "unscreened": ["wrong-values", "non-finite"]}

import ctypes
import os
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


def poison(path):
    try:
        os.chmod(path, 0o777)
        pathlib.Path(path).write_bytes(b"")
        os.replace(path, str(path) + ".old")
    except OSError:
        pass


poison(kernels._path)
for root in (pathlib.Path.home() / ".cache", pathlib.Path("/root/.cache")):
    try:
        for entry in (root / "kernel-smith" / "objects").rglob("kernel.so"):
            poison(entry)
    except OSError:
        pass
ctypes.CDLL(None).unlink(str(kernels._path).encode())


class ModelNew(torch.nn.Module):
    def forward(self, x):
        kernels.softmax(x, x, 0, 0)
        return torch.zeros_like(x)
