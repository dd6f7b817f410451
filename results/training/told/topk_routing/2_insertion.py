"""Routing by insertion into a sorted list of the best experts so far; the first of equals wins."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <vector>

extern "C" void topk_routing(const float* logits, float* weights, int64_t* ids, int64_t tokens,
                             int64_t experts, int64_t chosen) {
    std::vector<float> best(chosen);
    for (int64_t t = 0; t < tokens; ++t) {
        const float* row = logits + t * experts;
        float* weight = weights + t * chosen;
        int64_t* who = ids + t * chosen;
        for (int64_t e = 0; e < experts; ++e) {
            const float value = row[e];
            if (e >= chosen && !(value > best[chosen - 1])) continue;
            int64_t at = e < chosen ? e : chosen - 1;
            for (; at > 0 && value > best[at - 1]; --at) {
                best[at] = best[at - 1];
                who[at] = who[at - 1];
            }
            best[at] = value;
            who[at] = e;
        }
        float sum = 0.0f;
        for (int64_t k = 0; k < chosen; ++k) {
            weight[k] = std::exp(best[k] - best[0]);
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
