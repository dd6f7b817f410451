"""Welford's recurrence in lanes for wide rows; narrow ones are declined and go to the library."""

import torch
import torch.nn.functional as F

from kernel_smith.inline import cpp

NARROW = 64

kernels = cpp(r"""
#include <cmath>
#include <cstdint>

constexpr int kLanes = 8;

extern "C" void layer_norm(const float* x, const float* weight, const float* bias, float* y,
                           int64_t rows, int64_t columns, double epsilon) {
    #pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * columns;
        double means[kLanes] = {}, squares[kLanes] = {};
        const int64_t turns = columns / kLanes;
        for (int64_t t = 0; t < turns; ++t) {
            const double share = 1.0 / (t + 1);
            for (int k = 0; k < kLanes; ++k) {
                const double off = in[t * kLanes + k] - means[k];
                means[k] += off * share;
                squares[k] += off * (in[t * kLanes + k] - means[k]);
            }
        }
        double mean = 0.0, square = 0.0, count = 0.0;
        const auto merge = [&](double other, double spread, double many) {
            const double off = other - mean, all = count + many;
            mean += off * many / all;
            square += spread + off * off * count * many / all;
            count = all;
        };
        if (turns > 0)
            for (int k = 0; k < kLanes; ++k) merge(means[k], squares[k], turns);
        for (int64_t c = turns * kLanes; c < columns; ++c) merge(in[c], 0.0, 1.0);
        const double inverse = 1.0 / std::sqrt(square / count + epsilon);
        for (int64_t c = 0; c < columns; ++c)
            y[r * columns + c] = static_cast<float>((in[c] - mean) * inverse) * weight[c] + bias[c];
    }
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, columns: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(1 + 0.3 * torch.randn(columns))
        self.bias = torch.nn.Parameter(0.3 * torch.randn(columns))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[-1] < NARROW:
            return F.layer_norm(x, self.weight.shape, self.weight, self.bias, eps=1e-5)
        x = x.contiguous()
        y = torch.empty_like(x)
        kernels.layer_norm(x, self.weight, self.bias, y, *x.shape, 1e-5)
        return y
