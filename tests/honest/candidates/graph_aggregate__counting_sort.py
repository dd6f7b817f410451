"""Aggregation after a counting sort of the edges by target: every node then gathers its own sum, so
threads never write to the same row and sums stay in edge order."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>
#include <numeric>
#include <vector>

extern "C" void aggregate(const float* x, const int64_t* sources, const int64_t* targets,
                          const float* weights, float* y, int64_t nodes, int64_t edges,
                          int64_t features) {
    std::vector<int32_t> begins(nodes + 1, 0), order(edges);
    for (int64_t e = 0; e < edges; ++e) ++begins[targets[e] + 1];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    std::vector<int32_t> places(begins.begin(), begins.end() - 1);
    for (int64_t e = 0; e < edges; ++e) order[places[targets[e]]++] = static_cast<int32_t>(e);
    #pragma omp parallel for schedule(guided)
    for (int64_t node = 0; node < nodes; ++node) {
        float* out = y + node * features;
        for (int64_t f = 0; f < features; ++f) out[f] = 0.0f;
        for (int32_t i = begins[node]; i < begins[node + 1]; ++i) {
            const int64_t e = order[i];
            const float* in = x + sources[e] * features;
            for (int64_t f = 0; f < features; ++f) out[f] += in[f] * weights[e];
        }
    }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(
        self, x: torch.Tensor, sources: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        arguments = (t.contiguous() for t in (x, sources, targets, weights))
        y = torch.empty_like(x)
        kernels.aggregate(*arguments, y, x.shape[0], sources.numel(), x.shape[1])
        return y
