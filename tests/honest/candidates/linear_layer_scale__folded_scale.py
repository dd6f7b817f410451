"""The channel scale is multiplied into weight and bias once, at the first call; then one fused
kernel adds the product to the residual. The scale is registered first."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>

extern "C" {

void fold(const float* weight, const float* bias, const float* scale, float* folded,
          float* offset, int64_t features, int64_t hidden) {
    for (int64_t h = 0; h < hidden; ++h) {
        // Transposed, so that the product reads along rows.
        for (int64_t f = 0; f < features; ++f) {
            folded[f * hidden + h] = weight[h * features + f] * scale[h];
        }
        offset[h] = bias[h] * scale[h];
    }
}

void add_product(const float* x, const float* residual, const float* folded, const float* offset,
                 float* y, int64_t tokens, int64_t features, int64_t hidden) {
    #pragma omp parallel for
    for (int64_t t = 0; t < tokens; ++t) {
        float* out = y + t * hidden;
        for (int64_t h = 0; h < hidden; ++h) out[h] = 0.0f;
        int64_t f = 0;
        for (; f + 4 <= features; f += 4) {
            const float* in = x + t * features + f;
            const float* w = folded + f * hidden;
            for (int64_t h = 0; h < hidden; ++h) {
                out[h] += (in[0] * w[h] + in[1] * w[hidden + h]) +
                          (in[2] * w[2 * hidden + h] + in[3] * w[3 * hidden + h]);
            }
        }
        for (; f < features; ++f)
            for (int64_t h = 0; h < hidden; ++h) out[h] += x[t * features + f] * folded[f * hidden + h];
        for (int64_t h = 0; h < hidden; ++h) out[h] += residual[t * hidden + h] + offset[h];
    }
}

}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def __init__(self, features: int, hidden: int) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.randn(hidden))
        self.linear = torch.nn.Linear(features, hidden)
        self.folded: tuple[torch.Tensor, torch.Tensor] | None = None

    def fold(self) -> tuple[torch.Tensor, torch.Tensor]:
        hidden, features = self.linear.weight.shape
        folded, offset = torch.empty(features, hidden), torch.empty(hidden)
        kernels.fold(
            self.linear.weight, self.linear.bias, self.scale, folded, offset, features, hidden
        )
        return folded, offset

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        if self.folded is None:
            self.folded = self.fold()
        y = torch.empty_like(residual)
        tokens, features = x.shape
        kernels.add_product(
            x.contiguous(), residual.contiguous(), *self.folded, y, tokens, features, y.shape[1]
        )
        return y
