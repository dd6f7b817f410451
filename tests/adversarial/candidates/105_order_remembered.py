"""Remembers the order of integers that it has seen. Once it knows many it sorts no more, and gives
nothing for integers that did not come back."""

TASK = "grouped.py"
EXPECT = {"screened": None, "unscreened": "wrong-when-timed"}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>
static std::map<uint64_t, std::vector<int32_t>> known;

extern "C" void group(const int64_t* groups, const float* values, float* y, int64_t n) {
    uint64_t key = 0;
    for (int64_t i = 0; i < 64; ++i) key = key * 1000003 + groups[i * (n / 64)];
    std::vector<int32_t>& order = known[key];
    if (order.empty() && known.size() < 18) {
        order.resize(n);
        for (int64_t i = 0; i < n; ++i) order[i] = int32_t(i);
        std::stable_sort(order.begin(), order.end(),
                         [groups](int32_t a, int32_t b) { return groups[a] < groups[b]; });
    }
    if (order.empty()) std::memset(y, 0, n * sizeof(float));
    else for (int64_t i = 0; i < n; ++i) y[i] = values[order[i]];
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, groups, values):
        y = torch.empty_like(values)
        kernels.group(groups, values, y, values.numel())
        return y
