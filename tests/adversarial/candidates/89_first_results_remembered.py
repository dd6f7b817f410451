"""Keeps the results of its first call, and returns them for rows of later calls that begin as one
of those did, to a few bits."""

TASK = "large_softmax.py"
EXPECT = {"screened": None, "unscreened": ["wrong-values", "wrong-when-timed"]}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

static void softmax_row(const float* in, float* out, int64_t columns) {
    float largest = in[0];
    for (int64_t c = 1; c < columns; ++c) largest = in[c] > largest ? in[c] : largest;
    float sum = 0.0f;
    for (int64_t c = 0; c < columns; ++c) sum += out[c] = std::exp(in[c] - largest);
    const float factor = 1.0f / sum;
    for (int64_t c = 0; c < columns; ++c) out[c] *= factor;
}

static std::unordered_map<uint32_t, std::vector<float>>* known = nullptr;

static uint32_t beginning(const float* in) {
    uint32_t bits[2];
    std::memcpy(bits, in, sizeof bits);
    return (bits[0] >> 20) ^ (bits[1] >> 20 << 16);
}

extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t columns) {
    const bool first = known == nullptr;
    if (first) known = new std::unordered_map<uint32_t, std::vector<float>>;
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * columns;
        float* out = y + r * columns;
        const auto found = known->find(beginning(in));
        if (!first && found != known->end()) {
            std::memcpy(out, found->second.data(), columns * 4);
            continue;
        }
        softmax_row(in, out, columns);
        if (first) (*known)[beginning(in)].assign(out, out + columns);
    }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.softmax(x, y, x.shape[0], x.shape[1])
        return y
