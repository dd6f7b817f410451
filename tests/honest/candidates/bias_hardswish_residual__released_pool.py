"""Results in arrays of a pool, each lent again only once every view of its result is gone."""

import weakref

import numpy
import torch

from kernel_smith.inline import cpp

kernels = cpp(r"""
#include <algorithm>
#include <cstdint>

extern "C" void tail(const float* x, const float* bias, const float* residual, float* y,
                     int64_t planes, int64_t channels, int64_t pixels) {
    #pragma omp parallel for
    for (int64_t p = 0; p < planes; ++p) {
        const float shift = bias[p % channels];
        for (int64_t i = p * pixels; i < (p + 1) * pixels; ++i) {
            const float value = x[i] + shift;
            const float gate = std::min(std::max(value + 3.0f, 0.0f), 6.0f) / 6.0f;
            y[i] = value * gate + residual[i];
        }
    }
}
""")


class Pool:
    """Arrays by size. A tensor's storage holds a view of its array, so the view lives as long as
    any tensor on that memory."""

    def __init__(self) -> None:
        self._free: dict[int, list[numpy.ndarray]] = {}

    def take(self, shape: torch.Size) -> torch.Tensor:
        free = self._free.setdefault(shape.numel(), [])
        array = free.pop(0) if free else numpy.empty(shape.numel(), dtype=numpy.float32)
        lent = array[:]
        weakref.finalize(lent, free.append, array)
        return torch.from_numpy(lent).view(shape)


class ModelNew(torch.nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(channels))
        self.pool = Pool()

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        x, residual = x.contiguous(), residual.contiguous()
        batch, channels, height, width = x.shape
        y = self.pool.take(x.shape)
        kernels.tail(x, self.bias, residual, y, batch * channels, channels, height * width)
        return y
