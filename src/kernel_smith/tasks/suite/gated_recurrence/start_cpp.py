"""Gated recurrence, one channel after the other along time."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>

extern "C" void gated_recurrence(const float* gate, const float* x, float* y, int64_t batch,
                                 int64_t length, int64_t channels) {
    for (int64_t b = 0; b < batch; ++b) {
        for (int64_t c = 0; c < channels; ++c) {
            float state = 0.0f;
            for (int64_t t = 0; t < length; ++t) {
                const int64_t i = (b * length + t) * channels + c;
                const float keep = 1.0f / (1.0f + std::exp(-gate[i]));
                // 1 - keep without cancellation, for gates that are almost open.
                const float take = 1.0f / (1.0f + std::exp(gate[i]));
                state = keep * state + take * x[i];
                y[i] = state;
            }
        }
    }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, gate: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        gate, x = gate.contiguous(), x.contiguous()
        y = torch.empty_like(x)
        kernels.gated_recurrence(gate, x, y, *x.shape)
        return y
