"""3x3 convolution, bias and ReLU: tiles of four outputs and eight columns, from a padded copy of the input."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>
#include <cstring>
#include <vector>

typedef float float4 __attribute__((vector_size(16)));

extern "C" void conv2d_3x3_relu(const float* x, const float* weight, const float* bias, float* y,
                                int64_t batch, int64_t inputs, int64_t outputs, int64_t height,
                                int64_t width, int64_t stride) {
    const int64_t out_height = (height - 1) / stride + 1;
    const int64_t out_width = (width - 1) / stride + 1;
    // A padded row holds its columns by their remainder modulo the stride: taps read neighbours.
    const int64_t phase = (width + 1) / stride + 1, wide = phase * stride;
    const int64_t size = (height + 2) * wide;
    const int64_t offsets[3] = {0, 1 % stride * phase + 1 / stride, 2 % stride * phase + 2 / stride};
    std::vector<float> padded(batch * inputs * size + 8);
    for (int64_t line = 0; line < batch * inputs * height; ++line) {
        float* to = padded.data() + line / height * size + (line % height + 1) * wide;
        for (int64_t s = 0; s < stride; ++s) {
            for (int64_t j = s == 0 ? 1 : 0; j * stride + s <= width; ++j) {
                to[s * phase + j] = x[line * width + j * stride + s - 1];
            }
        }
    }
    #pragma omp parallel for
    for (int64_t quad = 0; quad < batch * ((outputs + 3) / 4); ++quad) {
        const int64_t b = quad / ((outputs + 3) / 4), o = quad % ((outputs + 3) / 4) * 4;
        const int64_t used = outputs - o < 4 ? outputs - o : 4;
        for (int64_t row = 0; row < out_height; ++row) {
            for (int64_t column = 0; column < out_width; column += 8) {
                float4 sums[4][2] = {};
                for (int64_t i = 0; i < inputs; ++i) {
                    const float* image = padded.data() + (b * inputs + i) * size;
                    const float* filters[4];
                    for (int64_t k = 0; k < 4; ++k) {
                        filters[k] = weight + ((k < used ? o + k : o) * inputs + i) * 9;
                    }
                    #pragma GCC unroll 3
                    for (int64_t fr = 0; fr < 3; ++fr) {
                        const float* in = image + (row * stride + fr) * wide + column;
                        #pragma GCC unroll 3
                        for (int64_t fc = 0; fc < 3; ++fc) {
                            float4 pixels[2];
                            std::memcpy(pixels, in + offsets[fc], sizeof pixels);
                            for (int64_t k = 0; k < 4; ++k) {
                                sums[k][0] += pixels[0] * filters[k][fr * 3 + fc];
                                sums[k][1] += pixels[1] * filters[k][fr * 3 + fc];
                            }
                        }
                    }
                }
                float tile[4][8];
                for (int64_t k = 0; k < 4; ++k) {
                    std::memcpy(tile[k], &sums[k][0], sizeof sums[k][0]);
                    std::memcpy(tile[k] + 4, &sums[k][1], sizeof sums[k][1]);
                }
                for (int64_t k = 0; k < used; ++k) {
                    float* out = y + ((b * outputs + o + k) * out_height + row) * out_width;
                    for (int64_t j = 0; j < 8 && column + j < out_width; ++j) {
                        const float sum = tile[k][j] + bias[o + k];
                        out[column + j] = sum > 0.0f ? sum : 0.0f;
                    }
                }
            }
        }
    }
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.convolution = torch.nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        weight, bias = self.convolution.weight, self.convolution.bias
        batch, inputs, height, width = x.shape
        outputs, stride = weight.shape[0], self.stride
        y = torch.empty(batch, outputs, (height - 1) // stride + 1, (width - 1) // stride + 1)
        kernels.conv2d_3x3_relu(x, weight, bias, y, batch, inputs, outputs, height, width, stride)
        return y
