"""Batch normalisation folded into one multiply-add per element. The folded pair is computed at the
first call and kept as long as parameters and statistics are the same objects, unchanged."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>

extern "C" {

void fold(const float* weight, const float* bias, const float* mean, const float* variance,
          float* factor, float* offset, int64_t channels, double epsilon) {
    for (int64_t c = 0; c < channels; ++c) {
        const double scale = weight[c] / std::sqrt(variance[c] + epsilon);
        factor[c] = static_cast<float>(scale);
        offset[c] = static_cast<float>(bias[c] - mean[c] * scale);
    }
}

void affine_relu(const float* __restrict x, const float* __restrict factor,
                 const float* __restrict offset, float* __restrict y, int64_t planes,
                 int64_t channels, int64_t area) {
    #pragma omp parallel for schedule(static, 4)
    for (int64_t plane = 0; plane < planes; ++plane) {
        const float a = factor[plane % channels], b = offset[plane % channels];
        const float* in = x + plane * area;
        float* out = y + plane * area;
        #pragma GCC ivdep
        for (int64_t i = 0; i < area; ++i) out[i] = __builtin_fmaxf(in[i] * a + b, 0.0f);
    }
}

}
"""

kernels = cpp(SOURCE, flags=("-ffinite-math-only", "-fno-signed-zeros"))


class ModelNew(torch.nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(1 + 0.3 * torch.randn(channels))
        self.bias = torch.nn.Parameter(0.5 * torch.randn(channels))
        self.register_buffer("mean", torch.randn(channels))
        self.register_buffer("variance", torch.rand(channels) * 3 + 0.2)
        self._folded_from: tuple[tuple[int, int], ...] = ()
        self._factor = self._offset = torch.empty(0)

    def folded(self) -> tuple[torch.Tensor, torch.Tensor]:
        sources = (self.weight, self.bias, self.mean, self.variance)
        identity = tuple((id(tensor), tensor._version) for tensor in sources)
        if identity != self._folded_from:
            channels = self.weight.numel()
            self._factor, self._offset = torch.empty(2, channels)
            kernels.fold(*sources, self._factor, self._offset, channels, 1e-5)
            self._folded_from = identity
        return self._factor, self._offset

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        batch, channels, height, width = x.shape
        y = torch.empty_like(x)
        kernels.affine_relu(x, *self.folded(), y, batch * channels, channels, height * width)
        return y
