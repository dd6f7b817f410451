"""`forward` drains a generator that yields the routing of a block of tokens at a time."""

from collections.abc import Iterator

import torch

from kernel_smith.inline import cpp

BLOCK = 64

kernels = cpp(r"""
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

extern "C" void route(const float* logits, float* weights, int64_t* experts, int64_t tokens,
                      int64_t count, int64_t chosen) {
    std::vector<int64_t> order(count);
    for (int64_t t = 0; t < tokens; ++t, logits += count, weights += chosen, experts += chosen) {
        std::iota(order.begin(), order.end(), 0);
        std::partial_sort(order.begin(), order.begin() + chosen, order.end(),
                          [=](int64_t a, int64_t b) {
                              return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
                          });
        const double best = logits[order[0]];
        double sum = 0.0;
        for (int64_t k = 0; k < chosen; ++k) sum += std::exp(logits[order[k]] - best);
        for (int64_t k = 0; k < chosen; ++k) {
            weights[k] = static_cast<float>(std::exp(logits[order[k]] - best) / sum);
            experts[k] = order[k];
        }
    }
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, chosen: int) -> None:
        super().__init__()
        self.chosen = chosen

    def blocks(self, logits: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        tokens, experts = logits.shape
        weights = logits.new_empty(tokens, self.chosen)
        indices = torch.empty(tokens, self.chosen, dtype=torch.int64)
        for first in range(0, tokens, BLOCK):
            part = slice(first, first + BLOCK)
            rows = logits[part]
            kernels.route(rows, weights[part], indices[part], len(rows), experts, self.chosen)
            yield weights, indices

    def forward(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        *_, whole = self.blocks(logits.contiguous())
        return whole
