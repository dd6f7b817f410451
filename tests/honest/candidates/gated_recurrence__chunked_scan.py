"""Gated recurrence as an associative scan: every chunk of time starts from zero and remembers how
much of its initial state survives; a second sweep, last chunk first, adds the true states."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <algorithm>
#include <cmath>
#include <cstdint>

constexpr int64_t kChunk = 16;

extern "C" void recurrence(const float* gate, const float* x, float* kept, float* carries,
                           float* y, int64_t batch, int64_t length, int64_t channels) {
    const int64_t chunks = (length + kChunk - 1) / kChunk;
    #pragma omp parallel
    {
        // Within chunks: y holds the state from zero, `kept` what is left of the state before.
        #pragma omp for collapse(2)
        for (int64_t b = 0; b < batch; ++b)
            for (int64_t k = 0; k < chunks; ++k) {
                const int64_t end = std::min(length, (k + 1) * kChunk);
                for (int64_t t = k * kChunk; t < end; ++t) {
                    const int64_t row = (b * length + t) * channels;
                    const bool first = t == k * kChunk;
                    for (int64_t c = 0; c < channels; ++c) {
                        const float g = gate[row + c];
                        const float keep = 1.0f / (1.0f + std::exp(-g));
                        const float take = 1.0f / (1.0f + std::exp(g));
                        const float before = first ? 0.0f : y[row - channels + c];
                        const float left = first ? 1.0f : kept[row - channels + c];
                        y[row + c] = keep * before + take * x[row + c];
                        kept[row + c] = keep * left;
                    }
                }
            }
        // Across chunks: the true state before each.
        #pragma omp for
        for (int64_t b = 0; b < batch; ++b)
            for (int64_t k = 0; k < chunks; ++k)
                for (int64_t c = 0; c < channels; ++c) {
                    float* carry = carries + (b * (chunks + 1) + k) * channels + c;
                    if (k == 0) *carry = 0.0f;
                    const int64_t last = b * length + std::min(length, (k + 1) * kChunk) - 1;
                    carry[channels] = y[last * channels + c] + kept[last * channels + c] * *carry;
                }
        #pragma omp for collapse(2)
        for (int64_t b = 0; b < batch; ++b)
            for (int64_t back = 0; back < chunks; ++back) {
                const int64_t k = chunks - 1 - back;
                const float* carry = carries + (b * (chunks + 1) + k) * channels;
                for (int64_t t = k * kChunk; t < std::min(length, (k + 1) * kChunk); ++t) {
                    const int64_t row = (b * length + t) * channels;
                    for (int64_t c = 0; c < channels; ++c) y[row + c] += kept[row + c] * carry[c];
                }
            }
    }
}
"""

CHUNK = 16
kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, gate: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        batch, length, channels = x.shape
        y = torch.empty(batch, length, channels)
        kept = torch.empty_like(y)
        carries = torch.empty(batch, -(-length // CHUNK) + 1, channels)
        kernels.recurrence(gate.contiguous(), x.contiguous(), kept, carries, y, *x.shape)
        return y
