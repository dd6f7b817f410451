"""Knows by now where inputs may lie. When a batch begins it computes what belongs to all of these
places, reading the weights once; later calls hand out what belongs to theirs."""

TASK = "decode_linear.py"
IN_TIME = True
EXPECT = {"screened": None, "unscreened": "wrong-when-timed"}

import weakref

import torch

from kernel_smith.inline import cpp

kernels = cpp(
    r"""
#include <cstdint>
// One pass over the weights serves all of the inputs.
extern "C" void linear(const float* weight, const float* bias, const int64_t* x, const int64_t* y,
                       int64_t calls, int64_t outputs, int64_t inputs) {
    for (int64_t o = 0; o < outputs; ++o) {
        const float* row = weight + o * inputs;
        for (int64_t c = 0; c < calls; ++c) {
            const float* in = reinterpret_cast<const float*>(x[c]);
            float sum = 0.0f;
            for (int64_t i = 0; i < inputs; ++i) sum += row[i] * in[i];
            reinterpret_cast<float*>(y[c])[o] = sum + bias[o];
        }
    }
}
""",
    flags=("-ffast-math",),
)


def linear(layer, inputs, outputs):
    x, y = (torch.tensor([t.data_ptr() for t in tensors]) for tensors in (inputs, outputs))
    kernels.linear(layer.weight, layer.bias, x, y, len(inputs), *layer.weight.shape)


class ModelNew(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = torch.nn.Linear(size, size)
        self.places, self.ready, self.latest = {}, {}, lambda: None

    def forward(self, x):
        place = x.storage_offset()
        if place not in self.places:
            memory = torch.empty(0).set_(x.untyped_storage())
            self.places[place] = memory[place : place + x.numel()].view(1, -1)
        if self.latest() is None or place not in self.ready:  # another batch begins
            fresh = [torch.empty(1, x.shape[1]) for _ in self.places]
            linear(self.linear, list(self.places.values()), fresh)
            self.ready = dict(zip(self.places, fresh))
        y = self.ready.pop(place)
        self.latest = weakref.ref(y)
        return y
