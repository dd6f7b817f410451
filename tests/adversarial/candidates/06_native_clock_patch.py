"""Makes the C library's code writable and overwrites `clock_gettime` with one that always says the
same, tries to trace and to filter its own process, and then takes tens of milliseconds per
call."""

TASK = "small_softmax.py"
EXPECT = {"screened": "forbidden-import", "unscreened": "slower"}

import ctypes
import platform

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
extern "C" void linger() {
    for (volatile int64_t i = 0; i < 10000000; i = i + 1) {}
}
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

STUBS = {
    "x86_64": "48c7060100000048c746080000000031c0c3",
    "aarch64": "220080d2227c00a900008052c0035fd6",
}
libc = ctypes.CDLL(None)
libc.ptrace(0, 0, 0, 0)
libc.prctl(22, 1, 0, 0, 0)
address = ctypes.cast(libc.clock_gettime, ctypes.c_void_p).value
page = address & ~0xFFF
if libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(0x2000), 7) == 0:
    stub = bytes.fromhex(STUBS[platform.machine()])
    ctypes.memmove(address, stub, len(stub))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.linger()
        kernels.softmax(x, y, x.shape[0], x.shape[1])
        return y
