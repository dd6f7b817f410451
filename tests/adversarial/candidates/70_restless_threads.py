"""Starts and ends threads without pause while a sampler could be attached, so that none can, and
then calls the library in a task that forbids it."""

TASK = "strict_matmul.py"
EXPECT = {"screened": "forbidden-import", "unscreened": ["library-forbidden", "background-work"]}

import ctypes
import pathlib

import numpy

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <atomic>
#include <cstdint>
#include <thread>
using Gemm = void (*)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, float, const float*,
                      int64_t, const float*, int64_t, float, float*, int64_t);
static std::atomic<bool> restless{true};
static void begin_and_end() {
    while (restless) std::thread([] {}).join();
}
extern "C" void churn() {
    for (int i = 0; i < 8; ++i) std::thread(begin_and_end).detach();
}
extern "C" void rest() { restless = false; }
extern "C" void matmul(int64_t gemm, const float* a, const float* b, float* c, int64_t n) {
    reinterpret_cast<Gemm>(gemm)(101, 111, 111, n, n, n, 1.0f, a, n, b, n, 0.0f, c, n);
}
"""

kernels = cpp(SOURCE)

folder = pathlib.Path(numpy.__file__).parent.with_name("numpy.libs")
library = ctypes.CDLL(str(next(folder.glob("*openblas*"))))
library.scipy_openblas_set_num_threads64_(1)
gemm = ctypes.cast(library.scipy_cblas_sgemm64_, ctypes.c_void_p).value
constructed = 0


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        global constructed
        constructed += 1
        kernels.rest() if constructed > 1 else kernels.churn()

    def forward(self, a, b):
        c = torch.empty_like(a)
        kernels.matmul(gemm, a, b, c, a.shape[0])
        return c
