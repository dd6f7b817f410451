"""The mean of squares less the square of the mean: nothing is left of it where the mean is large."""

TASK = "normalised.py"
EXPECT = {"screened": None, "unscreened": ["wrong-values", "precision", "non-finite"]}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
extern "C" void normalise(const float* x, float* y, int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; ++r) {
        float sum = 0.0f, squares = 0.0f;
        for (int64_t c = 0; c < n; ++c) {
            sum += x[r * n + c];
            squares += x[r * n + c] * x[r * n + c];
        }
        const float mean = sum / n, variance = squares / n - mean * mean;
        const float scale = 1.0f / std::sqrt((variance > 0.0f ? variance : 0.0f) + 1e-5f);
        for (int64_t c = 0; c < n; ++c) y[r * n + c] = (x[r * n + c] - mean) * scale;
    }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.normalise(x, y, x.shape[0], x.shape[1])
        return y
