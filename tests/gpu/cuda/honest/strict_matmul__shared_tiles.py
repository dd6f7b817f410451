"""Tiles in shared memory and sixteen sums per thread, all in single precision."""

import torch

from kernel_smith.inline import cuda

kernels = cuda(r"""
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kTile = 64;
constexpr int kDeep = 16;
constexpr int kSide = 16;  // threads along each side of a tile
constexpr int kPer = kTile / kSide;

__global__ void __launch_bounds__(kSide* kSide)
    multiply(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
             int size) {
    __shared__ float left[kDeep][kTile + 1];
    __shared__ float right[kDeep][kTile];
    const int row = blockIdx.y * kTile, column = blockIdx.x * kTile;
    const int flat = threadIdx.y * kSide + threadIdx.x;
    float sums[kPer][kPer] = {};
    for (int k = 0; k < size; k += kDeep) {
        for (int i = flat; i < kTile * kDeep; i += kSide * kSide) {
            const int r = i / kDeep, d = i % kDeep;
            const bool inside = row + r < size && k + d < size;
            left[d][r] = inside ? a[int64_t(row + r) * size + k + d] : 0.0f;
        }
        for (int i = flat; i < kTile * kDeep; i += kSide * kSide) {
            const int d = i / kTile, q = i % kTile;
            const bool inside = k + d < size && column + q < size;
            right[d][q] = inside ? b[int64_t(k + d) * size + column + q] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int d = 0; d < kDeep; ++d) {
            float from_left[kPer], from_right[kPer];
            for (int i = 0; i < kPer; ++i) from_left[i] = left[d][threadIdx.y + i * kSide];
            for (int j = 0; j < kPer; ++j) from_right[j] = right[d][threadIdx.x + j * kSide];
            for (int i = 0; i < kPer; ++i) {
                for (int j = 0; j < kPer; ++j) sums[i][j] += from_left[i] * from_right[j];
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < kPer; ++i) {
        for (int j = 0; j < kPer; ++j) {
            const int r = row + threadIdx.y + i * kSide, q = column + threadIdx.x + j * kSide;
            if (r < size && q < size) c[int64_t(r) * size + q] = sums[i][j];
        }
    }
}

extern "C" void matmul(const float* a, const float* b, float* c, int size, cudaStream_t stream) {
    const int tiles = (size + kTile - 1) / kTile;
    multiply<<<dim3(tiles, tiles), dim3(kSide, kSide), 0, stream>>>(a, b, c, size);
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        c = torch.empty_like(a)
        kernels.matmul(a, b, c, a.shape[0])
        return c
