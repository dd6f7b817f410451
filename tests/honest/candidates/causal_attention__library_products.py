"""Both matrix products by the library, the masked softmax between them by an authored kernel, in
place on the scores."""

import torch

from kernel_smith.inline import cpp

kernels = cpp(
    r"""
#include <cmath>
#include <cstdint>

extern "C" void masked_softmax(float* scores, int64_t rows, int64_t length, float scale) {
    #pragma omp parallel for
    for (int64_t row = 0; row < rows; ++row) {
        float* s = scores + row * length;
        const int64_t visible = row % length + 1;
        float largest = s[0];
        for (int64_t k = 1; k < visible; ++k) largest = s[k] > largest ? s[k] : largest;
        float sum = 0.0f;
        for (int64_t k = 0; k < visible; ++k) sum += s[k] = std::exp((s[k] - largest) * scale);
        for (int64_t k = 0; k < visible; ++k) s[k] /= sum;
        for (int64_t k = visible; k < length; ++k) s[k] = 0.0f;
    }
}
"""
)


class ModelNew(torch.nn.Module):
    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        batch, heads, length, features = query.shape
        scores = torch.matmul(query, key.transpose(-1, -2))
        kernels.masked_softmax(scores, batch * heads * length, length, features**-0.5)
        return torch.matmul(scores, value)
