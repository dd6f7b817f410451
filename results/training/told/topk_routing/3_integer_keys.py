"""Routing by repeated vectorised search for the best expert, on integers that sort like the logits;
the first of equals wins."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

// An integer that sorts like the value; adding zero makes -0 and 0 equal.
static int32_t key_of(float value) {
    value += 0.0f;
    int32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits ^ ((bits >> 31) & 0x7fffffff);
}

extern "C" void topk_routing(const float* logits, float* weights, int64_t* ids, int64_t tokens,
                             int64_t experts, int64_t chosen) {
    std::vector<int32_t> buffer(experts);
    int32_t* keys = buffer.data();
    const int32_t count = static_cast<int32_t>(experts);
    for (int64_t t = 0; t < tokens; ++t) {
        const float* row = logits + t * experts;
        float* weight = weights + t * chosen;
        int64_t* who = ids + t * chosen;
        #pragma omp simd
        for (int32_t e = 0; e < count; ++e) keys[e] = key_of(row[e]);
        float sum = 0.0f;
        for (int64_t k = 0; k < chosen; ++k) {
            int32_t highest = INT32_MIN, best = count - 1;
            #pragma omp simd reduction(max : highest)
            for (int32_t e = 0; e < count; ++e) highest = keys[e] > highest ? keys[e] : highest;
            #pragma omp simd reduction(min : best)
            for (int32_t e = 0; e < count; ++e) {
                const int32_t at = keys[e] == highest ? e : count;
                best = at < best ? at : best;
            }
            keys[best] = INT32_MIN;
            who[k] = best;
            weight[k] = std::exp(row[best] - row[who[0]]);
            sum += weight[k];
        }
        for (int64_t k = 0; k < chosen; ++k) weight[k] /= sum;
    }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def __init__(self, chosen: int) -> None:
        super().__init__()
        self.chosen = chosen

    def forward(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits = logits.contiguous()
        tokens, experts = logits.shape
        weights = torch.empty(tokens, self.chosen)
        ids = torch.empty(tokens, self.chosen, dtype=torch.int64)
        kernels.topk_routing(logits, weights, ids, tokens, experts, self.chosen)
        return weights, ids
