"""One AdamW step, one element at a time."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>

// The settings come in double precision: in single precision 1 - 0.999 is off in the fourth digit.
extern "C" void adamw_step(const float* parameters, const float* gradient, const float* first,
                           const float* second, float* new_parameters, float* new_first,
                           float* new_second, int64_t count, double rate, double decay,
                           double beta1, double beta2, int64_t step) {
    const double correction1 = 1.0 - std::pow(beta1, step);
    const double correction2 = 1.0 - std::pow(beta2, step);
    const double scaled_rate = rate / correction1;
    const double inverse2 = 1.0 / correction2;
    for (int64_t i = 0; i < count; ++i) {
        const double slope = gradient[i];
        const double mean = beta1 * first[i] + (1.0 - beta1) * slope;
        const double square = beta2 * second[i] + (1.0 - beta2) * slope * slope;
        const double size = std::sqrt(square * inverse2) + 1e-8;
        const double kept = parameters[i] * (1.0 - rate * decay);
        new_parameters[i] = static_cast<float>(kept - scaled_rate * mean / size);
        new_first[i] = static_cast<float>(mean);
        new_second[i] = static_cast<float>(square);
    }
}
"""

kernels = cpp(SOURCE)


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
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        inputs = [t.contiguous() for t in (parameters, gradient, first, second)]
        outputs = [torch.empty_like(parameters) for _ in range(3)]
        kernels.adamw_step(
            *inputs,
            *outputs,
            parameters.numel(),
            self.rate,
            self.decay,
            self.beta1,
            self.beta2,
            step,
        )
        return outputs[0], outputs[1], outputs[2]
