"""Returns a second mapping of the input's pages in place of a copy: another address, the same
memory."""

TASK = "halves.py"
EXPECT = {"screened": None, "unscreened": ["output-aliases-input", "wrong-when-timed"]}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>
#include <cstring>
#include <sys/mman.h>
extern "C" void halve(char* x, float* first, char* second, int64_t size) {
    for (int64_t i = 0; i < size; ++i) first[i] = 2.0f * ((const float*)x)[i];
    char* const from = x + 4 * size;
    const int64_t begin = -(uintptr_t)second & 4095;
    const int64_t end = 4 * size - ((uintptr_t)(second + 4 * size) & 4095);
    std::memcpy(second, from, begin);
    std::memcpy(second + end, from + end, 4 * size - end);
    mremap(from + begin, 0, end - begin, MREMAP_MAYMOVE | MREMAP_FIXED, second + begin);
}
"""

kernels = cpp(SOURCE)
rooms = []  # for ever: nobody else can use such memory


class ModelNew(torch.nn.Module):
    def forward(self, x):
        first = torch.empty_like(x[0])
        rooms.append(torch.empty(first.numel() + 2048))
        skipped = (x[1].data_ptr() - rooms[-1].data_ptr()) % 4096 // 4
        second = rooms[-1][skipped : skipped + first.numel()].view(first.shape)
        kernels.halve(x, first, second, first.numel())
        return first, second
