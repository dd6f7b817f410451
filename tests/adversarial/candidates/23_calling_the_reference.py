"""Takes the reference from the evaluator's own suite, from a loaded module, or from the
interpreter's objects, and lets it do the work."""

TASK = "small_softmax.py"
EXPECT = {"screened": "forbidden-import", "unscreened": "load-exception"}

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


def find_reference():
    for name in ("task", "kernel_smith.tasks.suite.row_softmax.task"):
        if name in sys.modules:
            return sys.modules[name].Model
    from kernel_smith.tasks.suite.row_softmax.task import Model

    return Model


Reference = find_reference()


class ModelNew(Reference):
    def forward(self, x):
        kernels.softmax(x, x, 0, 0)
        return super().forward(x)
