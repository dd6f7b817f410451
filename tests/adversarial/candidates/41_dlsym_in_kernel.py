"""Looks the vendor's matrix product up from C++ while it runs."""

TASK = "strict_matmul.py"
EXPECT = {"screened": "forbidden-symbol", "unscreened": "forbidden-symbol"}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>
#include <dlfcn.h>
using Gemm = void (*)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, float, const float*,
                      int64_t, const float*, int64_t, float, float*, int64_t);
extern "C" void matmul(const float* a, const float* b, float* c, int64_t n) {
    static Gemm gemm = reinterpret_cast<Gemm>(dlsym(RTLD_DEFAULT, "scipy_cblas_sgemm64_"));
    gemm(101, 111, 111, n, n, n, 1.0f, a, n, b, n, 0.0f, c, n);
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty_like(a)
        kernels.matmul(a, b, c, a.shape[0])
        return c
