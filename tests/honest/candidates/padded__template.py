"""Keeps rows of zeros in memory of its own, and copies them into a result that is fresh each time."""

import torch

from kernel_smith.inline import cpp

kernels = cpp(r"""
#include <cstdint>
#include <cstring>
extern "C" void place(const float* x, const float* zeros, float* y, int64_t rows, int64_t columns,
                      int64_t width) {
    for (int64_t r = 0; r < rows; ++r) {
        std::memcpy(y + r * width, x + r * columns, columns * 4);
        std::memcpy(y + r * width + columns, zeros, (width - columns) * 4);
    }
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.zeros = torch.zeros(448)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty(x.shape[0], x.shape[1] + 448)
        kernels.place(x, self.zeros, y, x.shape[0], x.shape[1], y.shape[1])
        return y
