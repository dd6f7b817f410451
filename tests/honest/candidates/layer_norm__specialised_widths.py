"""Layer normalisation instantiated for the widths that matter, with one loop for all others.

The sums are shifted by the row's first element, so that one pass is accurate enough. The bias is
drawn before the weight; names, not draws, say which parameter is which.
"""

import torch

from kernel_smith.inline import cpp

WIDTHS = (48, 768)

TEMPLATE = r"""
#include <cmath>
#include <cstdint>

template <int64_t kWidth>
static void normalise(const float* x, const float* weight, const float* bias, float* y,
                      int64_t rows, int64_t width, float epsilon) {
    const int64_t columns = kWidth > 0 ? kWidth : width;
    #pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * columns;
        float* out = y + r * columns;
        const float shift = in[0];
        double sum = 0.0, squares = 0.0;
        for (int64_t c = 0; c < columns; ++c) {
            const double value = static_cast<double>(in[c]) - shift;
            sum += value;
            squares += value * value;
        }
        const double centre = sum / columns;
        const double variance = squares / columns - centre * centre;
        const float mean = static_cast<float>(centre + shift);
        const float inverse = static_cast<float>(1.0 / std::sqrt(variance + epsilon));
        for (int64_t c = 0; c < columns; ++c) out[c] = (in[c] - mean) * inverse * weight[c] + bias[c];
    }
}


extern "C" void layer_norm(const float* x, const float* weight, const float* bias, float* y,
                           int64_t rows, int64_t width, float epsilon) {
    switch (width) {
@CASES@
        default: return normalise<0>(x, weight, bias, y, rows, width, epsilon);
    }
}
"""

CASE = "        case {0}: return normalise<{0}>(x, weight, bias, y, rows, width, epsilon);"
SOURCE = TEMPLATE.replace("@CASES@", "\n".join(CASE.format(width) for width in WIDTHS))

kernels = cpp(SOURCE, ("-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math"))


class ModelNew(torch.nn.Module):
    def __init__(self, columns: int) -> None:
        super().__init__()
        bias = 0.3 * torch.randn(columns)
        self.weight = torch.nn.Parameter(1 + 0.3 * torch.randn(columns))
        self.bias = torch.nn.Parameter(bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x, memory_format=torch.contiguous_format)
        rows, columns = x.shape
        kernels.layer_norm(x.contiguous(), self.weight, self.bias, y, rows, columns, 1e-5)
        return y
