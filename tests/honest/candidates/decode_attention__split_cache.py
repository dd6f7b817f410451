"""Decoding attention with the cache split into chunks, which asynchronous tasks attend to on their
own; the partial results meet in a scratch tensor and are merged, all before the call returns."""

import os

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <future>
#include <vector>

// partial: features of the weighted sum, then the largest score, then the sum of weights
static void attend(const float* q, const float* keys, const float* values, int64_t first,
                   int64_t last, int64_t features, double scale, double* partial) {
    double& largest = partial[features];
    double& total = partial[features + 1];
    std::fill(partial, partial + features + 2, 0.0);
    largest = -INFINITY;
    for (int64_t k = first; k < last; ++k) {
        double score = 0.0;
        for (int64_t f = 0; f < features; ++f) score += double(q[f]) * keys[k * features + f];
        score *= scale;
        if (score > largest) {
            const double shrink = std::exp(largest - score);
            for (int64_t f = 0; f < features; ++f) partial[f] *= shrink;
            total *= shrink;
            largest = score;
        }
        const double weight = std::exp(score - largest);
        for (int64_t f = 0; f < features; ++f) partial[f] += weight * values[k * features + f];
        total += weight;
    }
}

static void merge(const double* partial, int64_t chunks, int64_t features, float* y) {
    double largest = -INFINITY;
    for (int64_t c = 0; c < chunks; ++c) {
        largest = std::max(largest, partial[c * (features + 2) + features]);
    }
    double total = 0.0;
    std::vector<double> sums(features, 0.0);
    for (int64_t c = 0; c < chunks; ++c) {
        const double* part = partial + c * (features + 2);
        if (part[features + 1] == 0.0) continue;
        const double factor = std::exp(part[features] - largest);
        total += factor * part[features + 1];
        for (int64_t f = 0; f < features; ++f) sums[f] += factor * part[f];
    }
    for (int64_t f = 0; f < features; ++f) y[f] = static_cast<float>(sums[f] / total);
}

extern "C" void decode(const float* query, const float* keys, const float* values,
                       const int64_t* lengths, double* scratch, float* y, int64_t batch,
                       int64_t query_heads, int64_t key_heads, int64_t capacity,
                       int64_t features, int64_t chunks, int64_t workers) {
    const double scale = 1.0 / std::sqrt(double(features));
    const int64_t rows = batch * query_heads, jobs = rows * chunks;
    const auto work = [=](int64_t worker) {
        for (int64_t job = worker; job < jobs; job += workers) {
            const int64_t row = job / chunks, chunk = job % chunks, b = row / query_heads;
            const int64_t head = row % query_heads / (query_heads / key_heads);
            const int64_t cache = (b * key_heads + head) * capacity * features;
            attend(query + row * features, keys + cache, values + cache,
                   lengths[b] * chunk / chunks, lengths[b] * (chunk + 1) / chunks, features, scale,
                   scratch + job * (features + 2));
        }
    };
    std::vector<std::future<void>> others;
    for (int64_t w = 1; w < workers; ++w) {
        others.push_back(std::async(std::launch::async, work, w));
    }
    work(0);
    for (auto& other : others) other.get();
    for (int64_t row = 0; row < rows; ++row) {
        merge(scratch + row * chunks * (features + 2), chunks, features, y + row * features);
    }
}
"""

kernels = cpp(SOURCE)

CHUNK = 128
WORKERS = max(1, int(os.environ.get("OMP_NUM_THREADS", "0") or torch.get_num_threads()))


class ModelNew(torch.nn.Module):
    def forward(
        self, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, lengths: torch.Tensor
    ) -> torch.Tensor:
        batch, query_heads, features = query.shape
        key_heads, capacity = keys.shape[1:3]
        chunks = -(-capacity // CHUNK)
        scratch = torch.empty((batch, query_heads, chunks, features + 2), dtype=torch.float64)
        y = torch.empty_like(query)
        kernels.decode(
            query.contiguous(),
            keys.contiguous(),
            values.contiguous(),
            lengths.contiguous(),
            scratch,
            y,
            *(batch, query_heads, key_heads, capacity, features, chunks, WORKERS),
        )
        return y
