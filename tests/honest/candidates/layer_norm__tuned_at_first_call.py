"""Layer normalisation in two variants; the first call with a new shape times both and keeps the
faster one. Both write the same result."""

import logging
import time
from collections.abc import Callable

import torch

from kernel_smith.inline import cpp

log = logging.getLogger(__name__)

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <vector>

static void row_double(const float* in, const float* weight, const float* bias, float* out,
                       int64_t columns, double epsilon) {
    double sum = 0.0;
    for (int64_t c = 0; c < columns; ++c) sum += in[c];
    const double mean = sum / columns;
    double squares = 0.0;
    for (int64_t c = 0; c < columns; ++c) squares += (in[c] - mean) * (in[c] - mean);
    const double inverse = 1.0 / std::sqrt(squares / columns + epsilon);
    for (int64_t c = 0; c < columns; ++c) {
        out[c] = static_cast<float>((in[c] - mean) * inverse) * weight[c] + bias[c];
    }
}

static float lane_sum(const float* values, int64_t count) {
    float lanes[16] = {};
    int64_t i = 0;
    for (; i + 16 <= count; i += 16)
        for (int k = 0; k < 16; ++k) lanes[k] += values[i + k];
    float total = 0.0f;
    for (; i < count; ++i) total += values[i];
    for (int width = 8; width > 0; width /= 2)
        for (int k = 0; k < width; ++k) lanes[k] += lanes[k + width];
    return total + lanes[0];
}

static void row_lanes(const float* in, const float* weight, const float* bias, float* out,
                      int64_t columns, float epsilon, float* scratch) {
    const float mean = lane_sum(in, columns) / columns;
    for (int64_t c = 0; c < columns; ++c) {
        out[c] = in[c] - mean;
        scratch[c] = out[c] * out[c];
    }
    const float inverse = 1.0f / std::sqrt(lane_sum(scratch, columns) / columns + epsilon);
    for (int64_t c = 0; c < columns; ++c) out[c] = out[c] * inverse * weight[c] + bias[c];
}

extern "C" void in_doubles(const float* x, const float* weight, const float* bias, float* y,
                           int64_t rows, int64_t columns, double epsilon) {
    #pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        row_double(x + r * columns, weight, bias, y + r * columns, columns, epsilon);
    }
}

extern "C" void in_lanes(const float* x, const float* weight, const float* bias, float* y,
                         int64_t rows, int64_t columns, double epsilon) {
    #pragma omp parallel
    {
        std::vector<float> scratch(columns);
        #pragma omp for
        for (int64_t r = 0; r < rows; ++r) {
            row_lanes(x + r * columns, weight, bias, y + r * columns, columns,
                      static_cast<float>(epsilon), scratch.data());
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
        self._chosen: dict[torch.Size, Callable[..., None]] = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        y = torch.empty_like(x)
        arguments = (x, self.weight, self.bias, y, *x.shape, 1e-5)
        kernel = self._chosen.get(x.shape)
        if kernel is None:
            kernel = self._chosen[x.shape] = self._faster(arguments)
        kernel(*arguments)
        return y

    def _faster(self, arguments: tuple) -> Callable[..., None]:
        seconds = {}
        for variant in (kernels.in_doubles, kernels.in_lanes):
            variant(*arguments)
            begin = time.perf_counter()
            variant(*arguments)
            seconds[variant] = time.perf_counter() - begin
        best = min(seconds, key=seconds.__getitem__)
        log.warning("chose %s for %s", best.__name__, tuple(arguments[0].shape))
        return best
