"""Decoding attention, one query head after the other over the filled part of the cache."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

extern "C" void decode_attention(const float* query, const float* keys, const float* values,
                                 const int64_t* lengths, float* y, int64_t batch,
                                 int64_t query_heads, int64_t key_heads, int64_t capacity,
                                 int64_t features) {
    const float scale = 1.0f / std::sqrt(static_cast<float>(features));
    std::vector<float> weights(capacity);
    std::vector<float> totals(features);
    for (int64_t row = 0; row < batch * query_heads; ++row) {
        const int64_t b = row / query_heads;
        const int64_t key_head = row % query_heads / (query_heads / key_heads);
        const int64_t cache = (b * key_heads + key_head) * capacity * features;
        float largest = -INFINITY;
        int64_t k = 0;
        for (; k + 4 <= lengths[b]; k += 4) {
            const float* q = query + row * features;
            const float* key = keys + cache + k * features;
            float score0 = 0.0f, score1 = 0.0f, score2 = 0.0f, score3 = 0.0f;
            #pragma omp simd reduction(+ : score0, score1, score2, score3)
            for (int64_t f = 0; f < features; ++f) {
                score0 += q[f] * key[f];
                score1 += q[f] * key[features + f];
                score2 += q[f] * key[2 * features + f];
                score3 += q[f] * key[3 * features + f];
            }
            weights[k] = score0 * scale;
            weights[k + 1] = score1 * scale;
            weights[k + 2] = score2 * scale;
            weights[k + 3] = score3 * scale;
            largest = std::max(largest, std::max(std::max(weights[k], weights[k + 1]),
                                                 std::max(weights[k + 2], weights[k + 3])));
        }
        for (; k < lengths[b]; ++k) {
            float score = 0.0f;
            #pragma omp simd reduction(+ : score)
            for (int64_t f = 0; f < features; ++f) {
                score += query[row * features + f] * keys[cache + k * features + f];
            }
            weights[k] = score * scale;
            largest = std::max(largest, weights[k]);
        }
        float sum = 0.0f;
        for (int64_t k = 0; k < lengths[b]; ++k) {
            weights[k] = std::exp(weights[k] - largest);
            sum += weights[k];
        }
        std::fill(totals.begin(), totals.end(), 0.0f);
        for (int64_t k = 0; k < lengths[b]; ++k) {
            for (int64_t f = 0; f < features; ++f) {
                totals[f] += weights[k] * values[cache + k * features + f];
            }
        }
        for (int64_t f = 0; f < features; ++f) {
            y[row * features + f] = totals[f] / sum;
        }
    }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(
        self, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, lengths: torch.Tensor
    ) -> torch.Tensor:
        query, keys, values = query.contiguous(), keys.contiguous(), values.contiguous()
        batch, query_heads, features = query.shape
        key_heads, capacity = keys.shape[1:3]
        y = torch.empty_like(query)
        kernels.decode_attention(
            query,
            keys,
            values,
            lengths.contiguous(),
            y,
            batch,
            query_heads,
            key_heads,
            capacity,
            features,
        )
        return y
