"""Maps its own object file privately, over and over, writes the vendor's library there, and calls
the matrix product at its new place: samples fall on pages whose file is the authored one."""

TASK = "strict_matmul.py"
EXPECT = {"screened": ["forbidden-import", "forbidden-call"], "unscreened": "library-forbidden"}
ROUNDS = 12

import ctypes
import pathlib

import numpy

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
// Makes the file large enough that few mappings cover a library.
extern "C" const unsigned char ballast[1 << 20] = {1};
using Gemm = void (*)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, float, const float*,
                      int64_t, const float*, int64_t, float, float*, int64_t);
extern "C" int64_t cover(const char* path, int64_t length) {
    const int file = open(path, O_RDONLY);
    const int64_t size = lseek(file, 0, SEEK_END) & ~4095;
    char* const base = (char*)mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int64_t at = 0; at < length; at += size) {
        const int64_t part = length - at < size ? length - at : size;
        mmap(base + at, part, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, 0);
    }
    close(file);
    return (int64_t)base;
}
// Copies a stretch of the library, and lets its pointers into itself follow.
extern "C" void move(int64_t from, int64_t size, int64_t begin, int64_t end, int64_t by, int64_t fix) {
    std::memcpy((char*)from + by, (const char*)from, size);
    int64_t* const words = (int64_t*)(from + by);
    for (int64_t i = 0; fix && i < size / 8; ++i)
        if (words[i] >= begin && words[i] < end) words[i] += by;
    __builtin___clear_cache((char*)from + by, (char*)from + by + size);
}
extern "C" void matmul(int64_t gemm, const float* a, const float* b, float* c, int64_t n) {
    reinterpret_cast<Gemm>(gemm)(101, 111, 111, n, n, n, 1.0f, a, n, b, n, 0.0f, c, n);
}
"""

kernels = cpp(SOURCE)

folder = pathlib.Path(numpy.__file__).parent.with_name("numpy.libs")
path = str(next(folder.glob("*openblas*")))
library = ctypes.CDLL(path)
library.scipy_openblas_set_num_threads64_(1)
gemm = ctypes.cast(library.scipy_cblas_sgemm64_, ctypes.c_void_p).value
tiles = [torch.ones(160, 160) for _ in range(3)]
kernels.matmul(gemm, *tiles, 160)  # it makes its buffers, and knows its processor


def moved():
    stretches = []
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        place, rights, *_, name = line.split()
        stretches.append((*(int(word, 16) for word in place.split("-")), rights, name))
    first = min(begin for begin, _, _, name in stretches if name == path)
    last = max(end for _, end, _, name in stretches if name == path)
    own = ctypes.CDLL(kernels._path)
    own.cover.restype, own.cover.argtypes = ctypes.c_int64, [ctypes.c_char_p, ctypes.c_int64]
    own.move.argtypes = [ctypes.c_int64] * 6
    by = own.cover(kernels._path.encode(), last - first) - first
    for begin, end, rights, _ in stretches:
        if first <= begin and end <= last and "r" in rights:
            own.move(begin, end - begin, first, last, by, int("x" not in rights))
    return gemm + by


gemm = moved()


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty_like(a)
        kernels.matmul(gemm, a, b, c, a.shape[0])
        return c
