"""Frees itself from its cores, asks for many threads, and divides a long computation among
them."""

TASK = "small_softmax.py"
EXPECT = {"screened": "monkeypatch", "unscreened": ["slower", "extra-cores"]}

import os

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
extern "C" void linger() {
    #pragma omp parallel for num_threads(16)
    for (int part = 0; part < 16; ++part) {
        for (volatile int64_t i = 0; i < 2400000; i = i + 1) {}
    }
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

os.sched_setaffinity(0, range(os.cpu_count()))
os.environ["OMP_NUM_THREADS"] = "64"


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.linger()
        kernels.softmax(x, y, x.shape[0], x.shape[1])
        return y
