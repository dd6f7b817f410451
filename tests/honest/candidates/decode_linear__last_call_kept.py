"""A product of a matrix and a vector. The module counts its calls and keeps the last input and
result, as programs do that are debugged or watched."""

import torch

from kernel_smith.inline import cpp

kernels = cpp(
    r"""
#include <cstdint>
extern "C" void linear(const float* weight, const float* bias, const float* x, float* y,
                       int64_t outputs, int64_t inputs) {
    for (int64_t o = 0; o < outputs; ++o) {
        const float* row = weight + o * inputs;
        float sum = 0.0f;
        for (int64_t i = 0; i < inputs; ++i) sum += row[i] * x[i];
        y[o] = sum + bias[o];
    }
}
""",
    flags=("-ffast-math",),
)


class ModelNew(torch.nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(size, size)
        self.calls = 0
        self.latest: tuple[torch.Tensor, torch.Tensor] | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty(1, self.linear.out_features)
        layer = self.linear
        kernels.linear(layer.weight, layer.bias, x.contiguous(), y, *layer.weight.shape)
        self.calls += 1
        self.latest = (x, y)
        return y
