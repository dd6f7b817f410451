"""Convolution as a matrix product: an authored kernel unfolds the image, the library multiplies, and
a second authored kernel adds the bias and clips, in place."""

import torch

from kernel_smith.inline import cpp

unfolding = cpp(
    r"""
#include <cstdint>
#include <cstring>

// columns[channel * 9 + tap][row * out_width + column]
extern "C" void unfold(const float* x, float* columns, int64_t channels, int64_t height,
                       int64_t width, int64_t stride) {
    const int64_t rows = (height - 1) / stride + 1, across = (width - 1) / stride + 1;
    #pragma omp parallel for collapse(2)
    for (int64_t c = 0; c < channels; ++c)
        for (int64_t tap = 0; tap < 9; ++tap) {
            float* out = columns + (c * 9 + tap) * rows * across;
            for (int64_t row = 0; row < rows; ++row, out += across) {
                const int64_t r = row * stride + tap / 3 - 1;
                if (r < 0 || r >= height) {
                    std::memset(out, 0, sizeof(float) * across);
                    continue;
                }
                for (int64_t i = 0; i < across; ++i) {
                    const int64_t s = i * stride + tap % 3 - 1;
                    out[i] = s < 0 || s >= width ? 0.0f : x[(c * height + r) * width + s];
                }
            }
        }
}
"""
)

finishing = cpp(
    r"""
#include <cstdint>

extern "C" void bias_relu(float* y, const float* bias, int64_t planes, int64_t channels,
                          int64_t area) {
    for (int64_t i = 0; i < planes * area; ++i) {
        const float value = y[i] + bias[i / area % channels];
        y[i] = value < 0.0f ? 0.0f : value;
    }
}
"""
)


class ModelNew(torch.nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight, bias = self.convolution.weight, self.convolution.bias
        batch, inputs, height, width = x.shape
        stride = self.convolution.stride[0]
        rows, across = (height - 1) // stride + 1, (width - 1) // stride + 1
        y = torch.empty(batch, weight.shape[0], rows * across)
        columns = torch.empty(inputs * 9, rows * across)
        for image, out in zip(x.contiguous(), y, strict=True):
            unfolding.unfold(image, columns, inputs, height, width, stride)
            torch.mm(weight.flatten(1), columns, out=out)
        finishing.bias_relu(y, bias, y.shape[0] * y.shape[1], y.shape[1], y.shape[2])
        return y.view(batch, -1, rows, across)
