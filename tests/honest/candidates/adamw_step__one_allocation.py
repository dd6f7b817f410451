"""AdamW with all factors folded beforehand, in single precision; the three results are rows of one
allocation."""

from typing import NamedTuple

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>

struct Factors { float keep1, take1, keep2, take2, shrink, rate, inverse2; };

static inline void update(float p, float g, float m, float v, const Factors& f, float* out_p,
                          float* out_m, float* out_v) {
    const float mean = f.keep1 * m + f.take1 * g;
    const float square = f.keep2 * v + f.take2 * g * g;
    *out_m = mean;
    *out_v = square;
    *out_p = p * f.shrink - f.rate * mean / (std::sqrt(square * f.inverse2) + 1e-8f);
}

extern "C" void adamw(const float* parameters, const float* gradient, const float* first,
                      const float* second, float* out, int64_t count, float keep1, float take1,
                      float keep2, float take2, float shrink, float rate, float inverse2) {
    const Factors f{keep1, take1, keep2, take2, shrink, rate, inverse2};
    #pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < count; ++i) {
        update(parameters[i], gradient[i], first[i], second[i], f, out + i, out + count + i,
               out + 2 * count + i);
    }
}
"""

kernels = cpp(SOURCE, flags=("-fno-math-errno",))


class Stepped(NamedTuple):
    parameters: torch.Tensor
    first: torch.Tensor
    second: torch.Tensor


class ModelNew(torch.nn.Module):
    def __init__(self, rate: float, decay: float, beta1: float, beta2: float) -> None:
        super().__init__()
        self.rate, self.decay = rate, decay
        self.beta1, self.beta2 = beta1, beta2

    def forward(
        self,
        parameters: torch.Tensor,
        gradient: torch.Tensor,
        first: torch.Tensor,
        second: torch.Tensor,
        step: int,
    ) -> Stepped:
        out = torch.empty(3, parameters.numel())
        kernels.adamw(
            parameters.contiguous(),
            gradient.contiguous(),
            first.contiguous(),
            second.contiguous(),
            out,
            parameters.numel(),
            self.beta1,
            1 - self.beta1,
            self.beta2,
            1 - self.beta2,
            1 - self.rate * self.decay,
            self.rate / (1 - self.beta1**step),
            1 / (1 - self.beta2**step),
        )
        return Stepped(*out.unbind(0))
