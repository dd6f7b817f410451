"""Histograms in four interleaved copies with 32-bit counters, so that equal neighbours do not wait
for one another; the copies are merged at the end of each channel."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>
#include <cstring>

extern "C" void histogram(const uint8_t* image, int64_t* counts, int64_t channels, int64_t area) {
    #pragma omp parallel for
    for (int64_t channel = 0; channel < channels; ++channel) {
        const uint8_t* pixels = image + channel * area;
        alignas(64) uint32_t copies[4][256];
        std::memset(copies, 0, sizeof copies);
        int64_t i = 0;
        for (; i + 8 <= area; i += 8) {
            uint64_t word;
            std::memcpy(&word, pixels + i, sizeof word);
            for (int k = 0; k < 8; ++k) ++copies[k & 3][word >> (8 * k) & 0xff];
        }
        for (; i < area; ++i) ++copies[0][pixels[i]];
        for (int value = 0; value < 256; ++value) {
            counts[channel * 256 + value] = static_cast<int64_t>(copies[0][value]) +
                copies[1][value] + copies[2][value] + copies[3][value];
        }
    }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, image: torch.Tensor) -> torch.Tensor:
        channels, height, width = image.shape
        counts = torch.empty(channels, 256, dtype=torch.int64)
        kernels.histogram(image.contiguous(), counts, channels, height * width)
        return counts
