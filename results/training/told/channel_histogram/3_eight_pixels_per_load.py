"""Histogram of each channel: pixels are counted in two copies by turns, added at the end."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>
#include <cstring>

extern "C" void channel_histogram(const uint8_t* image, int64_t* counts, int64_t channels,
                                  int64_t area) {
    for (int64_t channel = 0; channel < channels; ++channel) {
        const uint8_t* pixels = image + channel * area;
        int64_t* own = counts + channel * 256;
        uint32_t copies[2][256] = {};
        int64_t i = 0;
        for (; i + 8 <= area; i += 8) {
            uint64_t word;
            std::memcpy(&word, pixels + i, sizeof word);
            for (int k = 0; k < 8; ++k) ++copies[k & 1][word >> (8 * k) & 0xff];
        }
        for (; i < area; ++i) ++copies[0][pixels[i]];
        for (int64_t value = 0; value < 256; ++value) {
            own[value] = static_cast<int64_t>(copies[0][value]) + copies[1][value];
        }
    }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, image: torch.Tensor) -> torch.Tensor:
        image = image.contiguous()
        channels, height, width = image.shape
        counts = torch.empty(channels, 256, dtype=torch.int64)
        kernels.channel_histogram(image, counts, channels, height * width)
        return counts
