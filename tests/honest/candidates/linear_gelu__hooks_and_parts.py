"""Two modules and two hooks: one hook makes the input contiguous, the other activates in place."""

import torch

from kernel_smith.inline import cpp

kernels = cpp(r"""
#include <cmath>
#include <cstdint>

extern "C" void product(const float* x, const float* weight, const float* bias, float* y,
                        int64_t tokens, int64_t features, int64_t hidden) {
    #pragma omp parallel for
    for (int64_t h = 0; h < hidden; ++h)
        for (int64_t t = 0; t < tokens; ++t) {
            float sum = 0.0f;
            #pragma omp simd reduction(+ : sum)
            for (int64_t f = 0; f < features; ++f)
                sum += x[t * features + f] * weight[h * features + f];
            y[t * hidden + h] = sum + bias[h];
        }
}

extern "C" void gelu(float* y, int64_t count) {
    #pragma omp parallel for
    for (int64_t i = 0; i < count; ++i) y[i] *= 0.5f * std::erfc(y[i] * -0.70710678118f);
}
""")


class Product(torch.nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.new_empty(x.shape[0], self.out_features)
        kernels.product(x, self.weight, self.bias, y, *x.shape, self.out_features)
        return y


class Activation(torch.nn.Module):
    def __call__(self, module: torch.nn.Module, inputs: tuple, y: torch.Tensor) -> torch.Tensor:
        kernels.gelu(y, y.numel())
        return y


class ModelNew(torch.nn.Module):
    def __init__(self, features: int, hidden: int) -> None:
        super().__init__()
        self.linear = Product(features, hidden)
        self.activation = Activation()
        self.linear.register_forward_pre_hook(lambda module, inputs: (inputs[0].contiguous(),))
        self.linear.register_forward_hook(self.activation)

    def forward(self, *inputs: torch.Tensor, **named: torch.Tensor) -> torch.Tensor:
        return self.linear(*inputs, **named)
