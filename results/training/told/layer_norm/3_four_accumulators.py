"""Layer normalisation in three passes over each row: mean, variance, result."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>

typedef float Vector __attribute__((vector_size(16)));

static inline Vector load(const float* from) {
    Vector value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

// The sum of all lanes of four accumulators.
static inline float total(const Vector* parts) {
    const Vector all = (parts[0] + parts[1]) + (parts[2] + parts[3]);
    return (all[0] + all[1]) + (all[2] + all[3]);
}

extern "C" void layer_norm(const float* x, const float* weight, const float* bias, float* y,
                           int64_t rows, int64_t columns, double epsilon) {
    const int64_t whole = columns / 16 * 16;
    #pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * columns;
        float* out = y + r * columns;
        Vector sums[4] = {};
        for (int64_t c = 0; c < whole; c += 16) {
            for (int k = 0; k < 4; ++k) sums[k] += load(in + c + 4 * k);
        }
        float sum = total(sums);
        for (int64_t c = whole; c < columns; ++c) sum += in[c];
        const float mean = sum / columns;
        Vector products[4] = {};
        for (int64_t c = 0; c < whole; c += 16) {
            for (int k = 0; k < 4; ++k) {
                const Vector centred = load(in + c + 4 * k) - mean;
                products[k] += centred * centred;
            }
        }
        float squares = total(products);
        for (int64_t c = whole; c < columns; ++c) squares += (in[c] - mean) * (in[c] - mean);
        const float inverse = static_cast<float>(1.0 / std::sqrt(squares / columns + epsilon));
        for (int64_t c = 0; c < columns; ++c) {
            out[c] = (in[c] - mean) * inverse * weight[c] + bias[c];
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
