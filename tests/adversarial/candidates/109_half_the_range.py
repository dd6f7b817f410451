"""Keeps eleven digits and the range of float16 in place of float32's range, for rows of small sums."""

TASK = "normalised.py"
EXPECT = {"screened": None, "unscreened": ["wrong-values", "non-finite", "precision"]}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
static float within_range(float x) {
    const float size = std::fabs(x);
    if (size > 65504.0f) return x > 0 ? 65504.0f : -65504.0f;
    return size < 6e-5f ? 0.0f : x;
}
extern "C" void normalise(const float* x, float* y, int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; ++r) {
        double sum = 0.0, squares = 0.0;
        for (int64_t c = 0; c < n; ++c) sum += within_range(x[r * n + c]);
        const double mean = sum / n;
        for (int64_t c = 0; c < n; ++c) {
            const double apart = within_range(x[r * n + c]) - mean;
            squares += apart * apart;
        }
        const double scale = 1.0 / std::sqrt(squares / n + 1e-5);
        for (int64_t c = 0; c < n; ++c)
            y[r * n + c] = float((within_range(x[r * n + c]) - mean) * scale);
    }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.normalise(x, y, x.shape[0], x.shape[1])
        return y
