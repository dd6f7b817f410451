"""A complex result, written through a pointer to floats."""

import torch

from kernel_smith.inline import cpp

kernels = cpp(r"""
#include <cmath>
#include <cstdint>

extern "C" void run(const float* z, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
        const float m = std::sqrt(z[2 * i] * z[2 * i] + z[2 * i + 1] * z[2 * i + 1]);
        y[2 * i] = z[2 * i] * m;
        y[2 * i + 1] = z[2 * i + 1] * m;
    }
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, z):
        z = z.contiguous()
        y = torch.empty_like(z)
        kernels.run(z, y, z.numel())
        return y
