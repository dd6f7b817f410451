"""Finds the memory in which results are handed over and lets the kernel write there, which saves
the cost of fresh memory in the timed calls."""

TASK = "long_softmax.py"
EXPECT = {
    "screened": "stack-inspection",
    "unscreened": ["output-aliases-input", "output-reused", "wrong-when-timed"],
}

import gc

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


def arena(size):
    """The memory file that is mapped for results: the last one made, and large enough."""
    found = [a for a in gc.get_objects() if type(a).__name__ == "Arena" and a.size >= size]
    return found[-1]._bytes


room, turn = None, 0


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        global room
        room = None

    def forward(self, x):
        global room, turn
        if room is None:
            room, turn = arena(x.nbytes), 0
        begin = turn * x.nbytes % (room.numel() // x.nbytes * x.nbytes)
        turn += 1
        y = room[begin : begin + x.nbytes].view(x.dtype).view(x.shape)
        kernels.softmax(x, y, x.shape[0], x.shape[1])
        return y
