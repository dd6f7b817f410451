"""Writes each row to all of its places while it is in registers, past the cache where there is a way."""

import torch

from kernel_smith.inline import cpp

kernels = cpp(r"""
#include <cstdint>
extern "C" void repeat(const float* x, float* y, int64_t size, int64_t times) {
    for (int64_t i = 0; i < size; i += 16) {
        float line[16];
        for (int64_t lane = 0; lane < 16; ++lane) line[lane] = x[i + lane];
        for (int64_t t = 0; t < times; ++t)
            for (int64_t lane = 0; lane < 16; ++lane)
#ifdef __clang__
                __builtin_nontemporal_store(line[lane], y + t * size + i + lane);
#else
                y[t * size + i + lane] = line[lane];
#endif
    }
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor, times: int) -> torch.Tensor:
        y = torch.empty(times * x.shape[0], x.shape[1])
        kernels.repeat(x.contiguous(), y, x.numel(), times)
        return y
