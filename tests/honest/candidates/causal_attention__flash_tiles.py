"""Causal attention in tiles of keys with a running maximum, as FlashAttention does: no row of scores
is ever complete in memory."""

import math

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

constexpr int64_t kTile = 32;

struct Work {
    std::vector<float> scores, keys, sums, largest, totals;
};

extern "C" void attention(const float* query, const float* key, const float* value, float* y,
                          int64_t heads, int64_t length, int64_t features, float scale) {
    const int64_t tiles = (length + kTile - 1) / kTile;
    #pragma omp parallel
    {
        static thread_local Work work;
        work.scores.resize(kTile * kTile);
        work.keys.resize(kTile * features);
        work.sums.resize(kTile * features);
        work.largest.resize(kTile);
        work.totals.resize(kTile);
        #pragma omp for collapse(2) schedule(dynamic)
        for (int64_t head = 0; head < heads; ++head)
        for (int64_t tile = 0; tile < tiles; ++tile) {
            const int64_t first = tile * kTile;
            const int64_t rows = std::min(kTile, length - first);
            const float* q = query + (head * length + first) * features;
            std::fill(work.sums.begin(), work.sums.end(), 0.0f);
            std::fill(work.largest.begin(), work.largest.end(), -INFINITY);
            std::fill(work.totals.begin(), work.totals.end(), 0.0f);
            for (int64_t start = 0; start <= first; start += kTile) {
                const int64_t count = std::min(kTile, length - start);
                const float* k = key + (head * length + start) * features;
                const float* v = value + (head * length + start) * features;
                // Keys transposed: scores of all keys of the tile grow together.
                for (int64_t j = 0; j < count; ++j)
                    for (int64_t f = 0; f < features; ++f) work.keys[f * kTile + j] = k[j * features + f];
                for (int64_t i = 0; i < rows; ++i) {
                    float* scores = &work.scores[i * kTile];
                    std::fill(scores, scores + kTile, 0.0f);
                    for (int64_t f = 0; f < features; ++f) {
                        const float one = q[i * features + f] * scale;
                        for (int64_t j = 0; j < kTile; ++j) scores[j] += one * work.keys[f * kTile + j];
                    }
                    const int64_t visible = std::min(count, first + i - start + 1);
                    const float best =
                        std::max(work.largest[i], *std::max_element(scores, scores + visible));
                    const float shrink = std::exp(work.largest[i] - best);
                    float* sums = &work.sums[i * features];
                    for (int64_t f = 0; f < features; ++f) sums[f] *= shrink;
                    float total = work.totals[i] * shrink;
                    for (int64_t j = 0; j < visible; ++j) {
                        const float weight = std::exp(scores[j] - best);
                        total += weight;
                        for (int64_t f = 0; f < features; ++f) sums[f] += weight * v[j * features + f];
                    }
                    work.largest[i] = best;
                    work.totals[i] = total;
                }
            }
            float* out = y + (head * length + first) * features;
            for (int64_t i = 0; i < rows; ++i)
                for (int64_t f = 0; f < features; ++f)
                    out[i * features + f] = work.sums[i * features + f] / work.totals[i];
        }
    }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        query, key, value = (tensor.contiguous() for tensor in (query, key, value))
        batch, heads, length, features = query.shape
        y = torch.empty_like(query)
        scale = 1 / math.sqrt(features)
        kernels.attention(query, key, value, y, batch * heads, length, features, scale)
        return y
