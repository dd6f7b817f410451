"""Linear layer over int8 weights that the constructor has transposed into blocks of eight outputs;
sums run per group and are scaled once per group."""

import torch

from kernel_smith.inline import cpp

LANES = 8

SOURCE = r"""
#include <cstdint>

constexpr int kLanes = LANES;

// packed[block][feature][lane], scales[block][group][lane]
extern "C" void linear(const float* x, const int8_t* packed, const float* scales, float* y,
                       int64_t tokens, int64_t features, int64_t hidden, int64_t group) {
    const int64_t blocks = (hidden + kLanes - 1) / kLanes, groups = features / group;
    #pragma omp parallel for collapse(2) schedule(dynamic, 8)
    for (int64_t t = 0; t < tokens; ++t)
        for (int64_t b = 0; b < blocks; ++b) {
            float totals[kLanes] = {};
            for (int64_t g = 0; g < groups; ++g) {
                float sums[kLanes] = {};
                for (int64_t f = g * group; f < (g + 1) * group; ++f) {
                    const int8_t* w = packed + (b * features + f) * kLanes;
                    for (int i = 0; i < kLanes; ++i) sums[i] += x[t * features + f] * w[i];
                }
                for (int i = 0; i < kLanes; ++i) {
                    totals[i] += sums[i] * scales[(b * groups + g) * kLanes + i];
                }
            }
            for (int i = 0; i < kLanes && b * kLanes + i < hidden; ++i) {
                y[t * hidden + b * kLanes + i] = totals[i];
            }
        }
}
"""

kernels = cpp(SOURCE, flags=(f"-DLANES={LANES}",))


def in_blocks(rows: torch.Tensor) -> torch.Tensor:
    """[hidden, n] -> [hidden / LANES, n, LANES], padded with zeros."""
    missing = -rows.shape[0] % LANES
    padded = torch.cat([rows, rows.new_zeros(missing, rows.shape[1])])
    return padded.view(-1, LANES, rows.shape[1]).transpose(1, 2).contiguous()


class ModelNew(torch.nn.Module):
    def __init__(self, features: int, hidden: int, group: int) -> None:
        super().__init__()
        self.group, self.hidden = group, hidden
        weight = torch.randint(-127, 128, (hidden, features), dtype=torch.int8)
        scales = torch.rand(hidden, features // group) * 0.01 + 0.001
        self.register_buffer("packed_weight", in_blocks(weight))
        self.register_buffer("packed_scales", in_blocks(scales))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens, features = x.shape
        y = torch.empty(tokens, self.hidden)
        kernels.linear(
            x.contiguous(),
            self.packed_weight,
            self.packed_scales,
            y,
            tokens,
            features,
            self.hidden,
            self.group,
        )
        return y
