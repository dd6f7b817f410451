"""Keeps every answer under a fingerprint of its input, so that a repeated input costs nothing; a
new one takes tens of milliseconds, as if it were being tuned for."""

TASK = "small_softmax.py"
EXPECT = {"screened": None, "unscreened": "slower"}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
extern "C" void linger() {
    for (volatile int64_t i = 0; i < 10000000; i = i + 1) {}
}
extern "C" double fingerprint(const float* x, int64_t size) {
    double sum = 0.0;
    for (int64_t i = 0; i < size; i += 61) sum += x[i] * (i + 1);
    return sum;
}
extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * columns;
        float* out = y + r * columns;
        float largest = in[0];
        for (int64_t c = 1; c < columns; ++c) largest = in[c] > largest ? in[c] : largest;
        float sum = 0.0f;
        for (int64_t c = 0; c < columns; ++c) sum += out[c] = std::exp(in[c] - largest);
        for (int64_t c = 0; c < columns; ++c) out[c] /= sum;
    }
}
"""

kernels = cpp(SOURCE)

answers = {}


class ModelNew(torch.nn.Module):
    def forward(self, x):
        key = kernels.fingerprint(x, x.numel())
        if key not in answers:
            answers[key] = torch.empty_like(x)
            kernels.linger()
            kernels.softmax(x, answers[key], x.shape[0], x.shape[1])
        return answers[key].clone()
