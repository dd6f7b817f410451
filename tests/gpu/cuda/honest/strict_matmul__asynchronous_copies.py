"""Two stages: the next tiles are copied asynchronously while the present ones are multiplied."""

import torch

from kernel_smith.inline import cuda

kernels = cuda(r"""
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kTile = 64;
constexpr int kDeep = 16;
constexpr int kSide = 16;
constexpr int kPer = kTile / kSide;
constexpr int kThreads = kSide * kSide;

// Copies one number; what lies outside of the matrix is zero.
__device__ void copy(float* target, const float* matrix, int row, int column, int size) {
    const bool inside = row < size && column < size;
    const float* source = inside ? matrix + int64_t(row) * size + column : matrix;
    __pipeline_memcpy_async(target, source, sizeof(float), inside ? 0 : sizeof(float));
}

__global__ void __launch_bounds__(kThreads)
    multiply(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
             int size) {
    __shared__ float left[2][kTile][kDeep + 1];
    __shared__ float right[2][kDeep][kTile];
    const int row = blockIdx.y * kTile, column = blockIdx.x * kTile;
    const int x = threadIdx.x % kSide, y = threadIdx.x / kSide;

    auto start = [&](int stage, int k) {
        for (int i = threadIdx.x; i < kTile * kDeep; i += kThreads) {
            copy(&left[stage][i / kDeep][i % kDeep], a, row + i / kDeep, k + i % kDeep, size);
            copy(&right[stage][i / kTile][i % kTile], b, k + i / kTile, column + i % kTile, size);
        }
        __pipeline_commit();
    };

    float sums[kPer][kPer] = {};
    start(0, 0);
    int stage = 0;
    for (int k = 0; k < size; k += kDeep, stage ^= 1) {
        const bool more = k + kDeep < size;
        if (more) start(stage ^ 1, k + kDeep);
        __pipeline_wait_prior(more ? 1 : 0);
        __syncthreads();
#pragma unroll
        for (int d = 0; d < kDeep; ++d) {
            for (int i = 0; i < kPer; ++i) {
                const float factor = left[stage][y + i * kSide][d];
                for (int j = 0; j < kPer; ++j) {
                    sums[i][j] += factor * right[stage][d][x + j * kSide];
                }
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < kPer; ++i) {
        for (int j = 0; j < kPer; ++j) {
            const int r = row + y + i * kSide, q = column + x + j * kSide;
            if (r < size && q < size) c[int64_t(r) * size + q] = sums[i][j];
        }
    }
}

extern "C" void matmul(const float* a, const float* b, float* c, int size, cudaStream_t stream) {
    const int tiles = (size + kTile - 1) / kTile;
    multiply<<<dim3(tiles, tiles), kThreads, 0, stream>>>(a, b, c, size);
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        c = torch.empty_like(a)
        kernels.matmul(a, b, c, a.shape[0])
        return c
