"""KL divergence rearranged so that each row is read twice and normalised once:
KL = E_t[t - s] / T + lse(s / T) - lse(t / T), with the expectation under the teacher."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <algorithm>
#include <cmath>
#include <cstdint>

extern "C" void divergence(const float* student, const float* teacher, float* y, int64_t samples,
                           int64_t classes, double temperature) {
    const double cold = 1.0 / temperature;
    #pragma omp parallel for
    for (int64_t r = 0; r < samples; ++r) {
        const float* s = student + r * classes;
        const float* t = teacher + r * classes;
        const double most_s = *std::max_element(s, s + classes);
        const double most_t = *std::max_element(t, t + classes);
        double sum_s = 0.0, sum_t = 0.0, weighted = 0.0;
        #pragma omp simd reduction(+ : sum_s, sum_t, weighted)
        for (int64_t c = 0; c < classes; ++c) {
            const double below_s = (s[c] - most_s) * cold, below_t = (t[c] - most_t) * cold;
            const double weight = std::exp(below_t);
            sum_s += std::exp(below_s);
            sum_t += weight;
            weighted += weight * (below_t - below_s);
        }
        const double bits = weighted / sum_t + std::log(sum_s) - std::log(sum_t);
        y[r] = static_cast<float>(bits * temperature * temperature);
    }
}
"""

kernels = cpp(SOURCE, flags=("-ffast-math", "-fno-associative-math"))


class ModelNew(torch.nn.Module):
    def __init__(self, temperature: float) -> None:
        super().__init__()
        self.temperature = temperature

    def forward(self, student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
        y = torch.empty(student.shape[0])
        kernels.divergence(
            student.contiguous(), teacher.contiguous(), y, *student.shape, self.temperature
        )
        return y
