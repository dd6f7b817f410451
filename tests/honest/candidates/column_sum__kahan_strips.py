"""Column sums by strips of rows with compensated summation. The strips' partial sums lie in a
workspace that the module keeps between calls; a second kernel in a library of its own adds them."""

import torch

from kernel_smith.inline import cpp

STRIP = 128

partial = cpp(
    r"""
#include <cstdint>

extern "C" void strips(const float* x, float* sums, float* lost, int64_t rows, int64_t columns,
                       int64_t strip) {
    const int64_t count = (rows + strip - 1) / strip;
    #pragma omp parallel for
    for (int64_t s = 0; s < count; ++s) {
        float* sum = sums + s * columns;
        float* compensation = lost + s * columns;
        for (int64_t c = 0; c < columns; ++c) sum[c] = compensation[c] = 0.0f;
        const int64_t end = (s + 1) * strip < rows ? (s + 1) * strip : rows;
        for (int64_t r = s * strip; r < end; ++r) {
            #pragma omp simd
            for (int64_t c = 0; c < columns; ++c) {
                const float value = x[r * columns + c] - compensation[c];
                const float total = sum[c] + value;
                compensation[c] = (total - sum[c]) - value;
                sum[c] = total;
            }
        }
    }
}
"""
)

final = cpp(
    r"""
#include <cstdint>

extern "C" void finish(const float* sums, const float* lost, float* y, int64_t strips,
                       int64_t columns) {
    for (int64_t c = 0; c < columns; ++c) {
        double total = 0.0;
        for (int64_t s = strips - 1; s >= 0; --s) {
            total += static_cast<double>(sums[s * columns + c]) - lost[s * columns + c];
        }
        y[c] = static_cast<float>(total);
    }
}
"""
)


class ModelNew(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self._workspace = torch.empty(0)

    def workspace(self, strips: int, columns: int) -> torch.Tensor:
        if self._workspace.numel() < 2 * strips * columns:
            self._workspace = torch.empty(2 * strips * columns)
        return self._workspace[: 2 * strips * columns].view(2, strips, columns)

    def forward(self, gradient: torch.Tensor) -> torch.Tensor:
        rows, columns = gradient.shape
        strips = -(-rows // STRIP)
        sums, lost = self.workspace(strips, columns)
        partial.strips(gradient.contiguous(), sums, lost, rows, columns, STRIP)
        result = torch.empty(columns)
        final.finish(sums, lost, result, strips, columns)
        return result
