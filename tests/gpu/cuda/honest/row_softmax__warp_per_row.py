"""One warp per row, four rows per block; maximum and sum by shuffles."""

import torch

from kernel_smith.inline import cuda

kernels = cuda(r"""
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

constexpr int kRowsPerBlock = 4;
constexpr unsigned kAll = 0xffffffffu;

__global__ void softmax_rows(const float* __restrict__ x, float* __restrict__ y, int64_t rows,
                             int columns) {
    const int64_t row = blockIdx.x * int64_t(kRowsPerBlock) + threadIdx.y;
    if (row >= rows) return;
    const float* in = x + row * columns;
    float* out = y + row * columns;
    float largest = -INFINITY;
    for (int c = threadIdx.x; c < columns; c += 32) largest = fmaxf(largest, in[c]);
    for (int step = 16; step > 0; step /= 2) {
        largest = fmaxf(largest, __shfl_xor_sync(kAll, largest, step));
    }
    float sum = 0.0f;
    for (int c = threadIdx.x; c < columns; c += 32) sum += expf(in[c] - largest);
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(kAll, sum, step);
    for (int c = threadIdx.x; c < columns; c += 32) out[c] = expf(in[c] - largest) / sum;
}

extern "C" void softmax(const float* x, float* y, int64_t rows, int columns,
                        cudaStream_t stream) {
    const dim3 block(32, kRowsPerBlock);
    const int64_t blocks = (rows + kRowsPerBlock - 1) / kRowsPerBlock;
    softmax_rows<<<dim3(unsigned(blocks)), block, 0, stream>>>(x, y, rows, columns);
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        kernels.softmax(x, y, x.shape[0], x.shape[1])
        return y
