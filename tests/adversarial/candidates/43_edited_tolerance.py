"""Rewrites the evaluator's files and loaded modules so that every tolerance is infinite, and then
returns zeros."""

TASK = "small_softmax.py"
EXPECT = {"screened": "forbidden-import", "unscreened": ["wrong-values", "non-finite"]}

import pathlib
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

for name, module in list(sys.modules.items()):
    if name.startswith("kernel_smith"):
        for word in ("_FLOORS", "_COARSE_FLOOR", "_REFERENCE_FACTOR", "rtol", "tolerance"):
            if hasattr(module, word):
                setattr(module, word, float("inf"))
home = pathlib.Path(sys.modules["kernel_smith"].__file__).parent
for path in ("evaluation/judge/accuracy.py", "tasks/suite/row_softmax/task.py"):
    try:
        (home / path).write_text("_FLOORS = {}\n")
    except OSError:
        pass


class ModelNew(torch.nn.Module):
    def forward(self, x):
        kernels.softmax(x, x, 0, 0)
        return torch.zeros_like(x)
