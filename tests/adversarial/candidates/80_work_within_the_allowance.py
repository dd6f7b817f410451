"""Takes over the runner and serves its requests with hardly any work: results go straight to the shared
memory. What an honest process needs for the hand-over is then free for the computation itself, which
is done while results are collected."""

TASK = "elementwise.py"
EXPECT = {
    "screened": "stack-inspection",
    "unscreened": ["deferred-work", "wrong-when-timed", "wrong-values"],
}

import ctypes
import sys

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>
extern "C" void tick(int64_t turns) {
    for (volatile int64_t i = 0; i < turns; i = i + 1) {}
}
extern "C" void scale(const float* x, float* y, int64_t size) {
    for (int64_t i = 0; i < size; ++i) y[i] = x[i] * 2.0f + 1.0f;
}
"""

kernels = cpp(SOURCE)

frame = sys._getframe()
while "handlers" not in frame.f_locals:
    frame = frame.f_back
handlers, runner = frame.f_locals["handlers"], frame.f_locals["self"]

timed = False
templates = []
owed = []


def construct(request, fds, honest=handlers["construct"]):
    global timed
    timed = runner._models != {}
    return honest(request, fds)


def bind(request, fds, honest=handlers["bind"]):
    if not timed:
        return honest(request, fds)
    owed[:] = [slots[0][0] for _, slots in request["calls"]]
    return {"ok": True}


def go(request, fds, honest=handlers["go"]):
    if not timed:
        return honest(request, fds)
    kernels.tick(20000 * request["calls"])
    return {"done": request["nonce"]}


def collect(request, fds, honest=handlers["collect"]):
    if not timed:
        answer = honest(request, fds)
        templates[:] = [answer["first"]]
        return answer
    x, y = runner._inputs._bytes.data_ptr(), runner._outputs._bytes.data_ptr()
    slots = request["slots"]
    rows, columns = templates[0]["tensors"][0]["shape"]
    for begin, ((target, *_),) in zip(owed, slots):
        scale(x + begin, y + target, rows * columns)
    return {"first": templates[0], "odd": [], "count": len(slots), "inner": 1e-6}


handlers.update(construct=construct, bind=bind, go=go, collect=collect)
scale = kernels._handle.scale
scale.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.scale(x, y, x.numel())
        return y
