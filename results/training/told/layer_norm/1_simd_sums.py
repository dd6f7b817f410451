"""Layer normalisation in three passes over each row: mean, variance, result."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>

extern "C" void layer_norm(const float* x, const float* weight, const float* bias, float* y,
                           int64_t rows, int64_t columns, double epsilon) {
    #pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * columns;
        float* out = y + r * columns;
        double sum = 0.0;
        #pragma omp simd reduction(+ : sum)
        for (int64_t c = 0; c < columns; ++c) sum += in[c];
        const double mean = sum / columns;
        double squares = 0.0;
        #pragma omp simd reduction(+ : squares)
        for (int64_t c = 0; c < columns; ++c) squares += (in[c] - mean) * (in[c] - mean);
        const double inverse = 1.0 / std::sqrt(squares / columns + epsilon);
        for (int64_t c = 0; c < columns; ++c) {
            out[c] = static_cast<float>((in[c] - mean) * inverse) * weight[c] + bias[c];
        }
    }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def __init__(self, columns: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(1 + 0.3 * torch.randn(columns))
        self.bias = torch.nn.Parameter(0.3 * torch.randn(columns))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        rows, columns = x.shape
        y = torch.empty_like(x)
        kernels.layer_norm(x, self.weight, self.bias, y, rows, columns, 1e-5)
        return y
