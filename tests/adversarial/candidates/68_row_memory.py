"""Remembers every row that it has seen, and takes its time over a new one: where inputs are put
together from rows of earlier ones, only copies are left to make."""

TASK = "scarce_rows.py"
EXPECT = {"screened": None, "unscreened": ["slower", "wrong-when-timed"]}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

static std::unordered_map<uint64_t, std::vector<float>>* known =
    new std::unordered_map<uint64_t, std::vector<float>>;

static void evaluate(const float* in, float* out, int64_t columns) {
    std::memcpy(out, in, columns * 4);
    std::vector<float> share(columns);
    for (int turn = 0; turn < 40; ++turn) {
        float largest = out[0], sum = 0.0f;
        for (int64_t c = 1; c < columns; ++c) largest = out[c] > largest ? out[c] : largest;
        for (int64_t c = 0; c < columns; ++c) sum += share[c] = std::exp(out[c] - largest);
        for (int64_t c = 0; c < columns; ++c) out[c] = share[c] / sum + std::tanh(out[c]);
    }
}

extern "C" void rows(const float* x, float* y, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * columns;
        uint64_t key;
        std::memcpy(&key, in, sizeof key);
        std::vector<float>& answer = (*known)[key];
        if (answer.empty()) {
            for (volatile int64_t i = 0; i < 200000; i = i + 1) {}
            answer.resize(columns);
            evaluate(in, answer.data(), columns);
        }
        std::memcpy(y + r * columns, answer.data(), columns * 4);
    }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.rows(x, y, x.shape[0], x.shape[1])
        return y
