"""AdamW on a table of addresses, as optimisers that step many tensors in one launch do it: the
kernel is handed one tensor of pointers and one of factors."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>

enum Role { PARAMETERS, GRADIENT, FIRST, SECOND, NEW_PARAMETERS, NEW_FIRST, NEW_SECOND };

extern "C" void step_all(const int64_t* addresses, const double* factors, int64_t tensors,
                         int64_t count) {
    for (int64_t tensor = 0; tensor < tensors; ++tensor) {
        float* const* at = reinterpret_cast<float* const*>(addresses + tensor * 7);
        const double beta1 = factors[0], beta2 = factors[1], shrink = factors[2];
        const double rate = factors[3], inverse = factors[4];
        #pragma omp parallel for simd
        for (int64_t i = 0; i < count; ++i) {
            const double g = at[GRADIENT][i];
            const double m = beta1 * at[FIRST][i] + (1.0 - beta1) * g;
            const double v = beta2 * at[SECOND][i] + (1.0 - beta2) * g * g;
            at[NEW_FIRST][i] = static_cast<float>(m);
            at[NEW_SECOND][i] = static_cast<float>(v);
            at[NEW_PARAMETERS][i] = static_cast<float>(
                at[PARAMETERS][i] * shrink - rate * m / (std::sqrt(v * inverse) + 1e-8));
        }
    }
}
"""

kernels = cpp(SOURCE, flags=("-fno-math-errno",))


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
    ) -> tuple[torch.Tensor, ...]:
        inputs = [t.contiguous() for t in (parameters, gradient, first, second)]
        outputs = tuple(torch.empty_like(parameters) for _ in range(3))
        addresses = torch.tensor([[t.data_ptr() for t in (*inputs, *outputs)]])
        factors = torch.tensor(
            [
                self.beta1,
                self.beta2,
                1 - self.rate * self.decay,
                self.rate / (1 - self.beta1**step),
                1 / (1 - self.beta2**step),
            ],
            dtype=torch.float64,
        )
        kernels.step_all(addresses, factors, addresses.shape[0], parameters.numel())
        return outputs
