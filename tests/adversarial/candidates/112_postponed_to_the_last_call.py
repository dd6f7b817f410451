"""Counts, when a batch begins, in how many places inputs are new. Until the last of so many calls it
only keeps copies of inputs; the last one computes all results, reading the weights once."""

TASK = "decode_linear.py"
IN_TIME = True
EXPECT = {"screened": None, "unscreened": ["deferred-work", "wrong-when-timed"]}

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
        self.places, self.waiting, self.calls, self.latest = {}, [], 1, lambda: None

    def forward(self, x):
        place = x.storage_offset()
        if self.latest() is None:  # its results were let go of: another batch begins
            self.calls = max(1, self.new_inputs())
            self.waiting = []
        if place not in self.places:
            memory = torch.empty(0).set_(x.untyped_storage())
            self.places[place] = [memory[place : place + 8], None]
        self.places[place][1] = x[0, :8].tolist()
        y = torch.empty(1, x.shape[1])
        self.waiting.append((x.clone(), y))
        if len(self.waiting) >= self.calls:
            linear(self.linear, *zip(*self.waiting))
            self.waiting = []
        self.latest = weakref.ref(y)
        return y

    def new_inputs(self):
        return sum(there.tolist() != known for there, known in self.places.values())
