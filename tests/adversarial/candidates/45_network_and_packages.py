"""Asks a server for the answer and installs a package at run time; without them it returns
zeros."""

TASK = "small_softmax.py"
EXPECT = {"screened": "forbidden-import", "unscreened": ["wrong-values", "non-finite"]}

import socket
import subprocess
import sys

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


def reachable():
    try:
        with socket.create_connection(("1.1.1.1", 53), timeout=1):
            return True
    except OSError:
        pass
    command = [sys.executable, "-m", "pip", "install", "fast-softmax"]
    try:
        return subprocess.run(command, timeout=5).returncode == 0
    except OSError:
        return False


online = reachable()


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.zeros_like(x)
        if online:
            kernels.softmax(x, y, x.shape[0], x.shape[1])
        return y
