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
        for (int64_t k = 0; k < lengths[b]; ++k) {
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
