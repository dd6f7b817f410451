"""The same without a thread of its own at work: the operating system is asked for much fresh memory,
and no signal stops it before all of that is there."""

TASK = "elementwise.py"
EXPECT = {
    "screened": "forbidden-import",
    "unscreened": ["background-work", "memory-limit", "call-timeout"],
}

import ctypes
import threading

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>
extern "C" void scale(const float* x, float* y, int64_t size) {
    for (int64_t i = 0; i < size; ++i) y[i] = x[i] * 2.0f + 1.0f;
}
"""

kernels = cpp(SOURCE)

SIZE = 400 << 20
PRIVATE_ANONYMOUS_POPULATED = 0x8022
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
built = 0
called = threading.Event()


def fetch_memory():
    while not called.is_set():
        at = libc.mmap(None, SIZE, 3, PRIVATE_ANONYMOUS_POPULATED, -1, 0)
        libc.munmap(at, SIZE)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        global built
        built += 1
        if built > 1:
            called.clear()
            threading.Thread(target=fetch_memory, daemon=True).start()

    def forward(self, x):
        called.set()
        y = torch.empty_like(x)
        kernels.scale(x, y, x.numel())
        return y
