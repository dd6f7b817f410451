"""A matrix divided by its norm: one kernel for partial sums, one for the quotients."""

import torch

from kernel_smith.inline import hip

SOURCE = r"""
#include <hip/hip_bf16.h>
#include <hip/hip_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;
constexpr int kWave = 64;
constexpr int kWaves = kThreads / kWave;
static_assert(kThreads % kWave == 0, "block_sum needs whole waves");

__device__ float widen(float value) { return value; }
__device__ float widen(__hip_bfloat16 value) { return __bfloat162float(value); }

__device__ void store(float* place, float value) { *place = value; }
__device__ void store(__hip_bfloat16* place, float value) { *place = __float2bfloat16(value); }

// The sum over all threads of the block, for each of them.
__device__ float block_sum(float value) {
    __shared__ float sums[kWaves];
    for (int offset = kWave / 2; offset > 0; offset /= 2) {
        value += __shfl_xor(value, offset);
    }
    if (threadIdx.x % kWave == 0) sums[threadIdx.x / kWave] = value;
    __syncthreads();
    float total = 0.0f;
    for (int wave = 0; wave < kWaves; ++wave) total += sums[wave];
    __syncthreads();  // the next call writes `sums` again
    return total;
}

constexpr float kEpsilon = 1e-7f;

// The sum of squares of each block's elements. A block without elements writes zero.
template <typename T>
__global__ __launch_bounds__(kThreads)
void add_squares(const T* __restrict__ x, float* __restrict__ partial, int64_t count) {
    const int64_t stride = gridDim.x * static_cast<int64_t>(kThreads);
    float squares = 0.0f;
    for (int64_t i = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x; i < count;
         i += stride) {
        const float value = widen(x[i]);
        squares += value * value;
    }
    squares = block_sum(squares);
    if (threadIdx.x == 0) partial[blockIdx.x] = squares;
}

// Every block adds the partial sums for itself, all in the same order.
template <typename T>
__global__ __launch_bounds__(kThreads)
void divide(const T* __restrict__ x, const float* __restrict__ partial, T* __restrict__ y,
            int64_t count) {
    const int64_t stride = gridDim.x * static_cast<int64_t>(kThreads);
    float squares = 0.0f;
    for (int b = threadIdx.x; b < gridDim.x; b += kThreads) squares += partial[b];
    const float norm = sqrtf(block_sum(squares)) + kEpsilon;
    for (int64_t i = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x; i < count;
         i += stride) {
        store(y + i, widen(x[i]) / norm);
    }
}

template <typename T>
void launch(const T* x, float* partial, T* y, int64_t count, int blocks, hipStream_t stream) {
    add_squares<<<blocks, kThreads, 0, stream>>>(x, partial, count);
    divide<<<blocks, kThreads, 0, stream>>>(x, partial, y, count);
}

extern "C" void normalise_float32(const float* x, float* partial, float* y, int64_t count,
                                  int blocks, hipStream_t stream) {
    launch(x, partial, y, count, blocks, stream);
}

extern "C" void normalise_bfloat16(const __hip_bfloat16* x, float* partial, __hip_bfloat16* y,
                                   int64_t count, int blocks, hipStream_t stream) {
    launch(x, partial, y, count, blocks, stream);
}
"""

kernels = hip(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        y = torch.empty_like(x)
        blocks = min(1024, (x.numel() + 255) // 256)
        partial = torch.empty(blocks, dtype=torch.float32, device=x.device)
        half = x.dtype == torch.bfloat16
        launch = kernels.normalise_bfloat16 if half else kernels.normalise_float32
        launch(x, partial, y, x.numel(), blocks)
        return y
