"""Asks for kernel after kernel and never reads an answer, until the judge is stuck in writing
one."""

TASK = "small_softmax.py"
EXPECT = {"screened": "stack-inspection", "unscreened": ["protocol-violation", "call-timeout"]}
IN_TIME = False  # however long a call may take, the judge writes for ten seconds at most

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

frame = sys._getframe()
while "handlers" not in frame.f_locals:
    frame = frame.f_back
handlers, runner = frame.f_locals["handlers"], frame.f_locals["self"]

need = {"need": {"dialect": "cpp", "source": SOURCE, "flags": []}}


class ModelNew(torch.nn.Module):
    def forward(self, x):
        kernels.softmax(x, x, 0, 0)
        while True:
            runner._channel.send(need)
