"""Results of many calls are slices of one slab, one after another; none is given out twice."""

import torch

from kernel_smith.inline import cpp

CALLS_PER_SLAB = 64

kernels = cpp(r"""
#include <cstdint>

extern "C" void statistics(const float* x, float* variance, float* mean, int64_t batch,
                           int64_t channels, int64_t pixels) {
    #pragma omp parallel for
    for (int64_t c = 0; c < channels; ++c) {
        double sum = 0.0, squares = 0.0;
        for (int64_t b = 0; b < batch; ++b)
            for (int64_t i = 0; i < pixels; ++i) sum += x[(b * channels + c) * pixels + i];
        const double centre = sum / (batch * pixels);
        for (int64_t b = 0; b < batch; ++b)
            for (int64_t i = 0; i < pixels; ++i) {
                const double off = x[(b * channels + c) * pixels + i] - centre;
                squares += off * off;
            }
        mean[c] = static_cast<float>(centre);
        variance[c] = static_cast<float>(squares / (batch * pixels));
    }
}
""")


class Slab:
    def __init__(self) -> None:
        self._rest = torch.empty(0)

    def slice(self, size: int) -> torch.Tensor:
        if self._rest.numel() < size:
            self._rest = torch.empty(CALLS_PER_SLAB * size)
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken


class ModelNew(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.slab = Slab()

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        batch, channels, height, width = x.shape
        variance, mean = self.slab.slice(2 * channels).split(channels)
        kernels.statistics(x.contiguous(), variance, mean, batch, channels, height * width)
        return variance, mean
