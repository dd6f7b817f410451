"""Routing by insertion into a short sorted list: one pass over the experts, which stay in order
among equals because a newcomer must be strictly better to overtake."""

from typing import NamedTuple

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>

extern "C" int route(const float* logits, float* weights, int64_t* ids, int64_t tokens,
                     int64_t experts, int64_t chosen) {
    constexpr int64_t kMost = 16;
    if (chosen > kMost || chosen > experts) return 1;
    #pragma omp parallel for
    for (int64_t t = 0; t < tokens; ++t) {
        const float* row = logits + t * experts;
        float best[kMost];
        int64_t who[kMost];
        int64_t filled = 0;
        for (int64_t e = 0; e < experts; ++e) {
            const float value = row[e];
            if (filled == chosen && !(value > best[chosen - 1])) continue;
            int64_t at = filled < chosen ? filled++ : chosen - 1;
            for (; at > 0 && value > best[at - 1]; --at) {
                best[at] = best[at - 1];
                who[at] = who[at - 1];
            }
            best[at] = value;
            who[at] = e;
        }
        float sum = 0.0f;
        for (int64_t k = chosen - 1; k >= 0; --k) sum += weights[t * chosen + k] = std::exp(best[k] - best[0]);
        for (int64_t k = 0; k < chosen; ++k) {
            weights[t * chosen + k] /= sum;
            ids[t * chosen + k] = who[k];
        }
    }
    return 0;
}
"""

kernels = cpp(SOURCE)


class Routing(NamedTuple):
    weights: torch.Tensor
    experts: torch.Tensor


class ModelNew(torch.nn.Module):
    def __init__(self, chosen: int) -> None:
        super().__init__()
        self.chosen = chosen

    def forward(self, logits: torch.Tensor) -> Routing:
        tokens, experts = logits.shape
        routing = Routing(
            torch.empty(tokens, self.chosen),
            torch.empty(tokens, self.chosen, dtype=torch.long),
        )
        status = kernels.route(logits.contiguous(), *routing, tokens, experts, self.chosen)
        assert status == 0, f"cannot choose {self.chosen} of {experts} experts"
        return routing
