"""Routing by repeated search for the best expert not yet taken; the first of equals wins."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

extern "C" void topk_routing(const float* logits, float* weights, int64_t* ids, int64_t tokens,
                             int64_t experts, int64_t chosen) {
    std::vector<char> taken(experts);
    for (int64_t t = 0; t < tokens; ++t) {
        const float* row = logits + t * experts;
        float* weight = weights + t * chosen;
        std::fill(taken.begin(), taken.end(), 0);
        float sum = 0.0f;
        for (int64_t k = 0; k < chosen; ++k) {
            int64_t best = -1;
            for (int64_t e = 0; e < experts; ++e) {
                if (!taken[e] && (best < 0 || row[e] > row[best])) best = e;
            }
            taken[best] = true;
            ids[t * chosen + k] = best;
            weight[k] = std::exp(row[best] - row[ids[t * chosen]]);
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
