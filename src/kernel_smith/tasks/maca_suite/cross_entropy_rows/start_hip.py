"""Mean cross entropy: one block per row, one more for the mean; waves of 64."""

import torch

from kernel_smith.inline import hip

SOURCE = r"""
#include <hip/hip_bf16.h>
#include <hip/hip_runtime.h>

#include <cmath>
#include <cstdint>

constexpr int kThreads = 256;
constexpr int kWave = 64;
static_assert(kThreads % kWave == 0, "a reduction needs whole waves");

__device__ float widen(float value) { return value; }
__device__ float widen(__hip_bfloat16 value) { return __bfloat162float(value); }

// The maximum over the threads of a block; every thread gets it.
__device__ float block_max(float value) {
    __shared__ float of_wave[kThreads / kWave];
    for (int step = kWave / 2; step > 0; step /= 2) {
        value = fmaxf(value, __shfl_xor(value, step));
    }
    if (threadIdx.x % kWave == 0) of_wave[threadIdx.x / kWave] = value;
    __syncthreads();
    float result = -INFINITY;
    for (int wave = 0; wave < kThreads / kWave; ++wave) result = fmaxf(result, of_wave[wave]);
    __syncthreads();  // before the next call writes
    return result;
}

// The sum over the threads of a block; every thread gets it.
__device__ float block_sum(float value) {
    __shared__ float of_wave[kThreads / kWave];
    for (int step = kWave / 2; step > 0; step /= 2) {
        value += __shfl_xor(value, step);
    }
    if (threadIdx.x % kWave == 0) of_wave[threadIdx.x / kWave] = value;
    __syncthreads();
    float result = 0.0f;
    for (int wave = 0; wave < kThreads / kWave; ++wave) result += of_wave[wave];
    __syncthreads();  // before the next call writes
    return result;
}

template <typename T>
__global__ __launch_bounds__(kThreads)
void row_loss(const T* __restrict__ logits, const int64_t* __restrict__ targets,
              float* __restrict__ losses, int64_t classes) {
    const T* row = logits + blockIdx.x * classes;
    float largest = -INFINITY;
    for (int64_t c = threadIdx.x; c < classes; c += kThreads) {
        largest = fmaxf(largest, widen(row[c]));
    }
    largest = block_max(largest);
    float sum = 0.0f;
    for (int64_t c = threadIdx.x; c < classes; c += kThreads) {
        sum += expf(widen(row[c]) - largest);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        const float chosen = widen(row[targets[blockIdx.x]]);
        losses[blockIdx.x] = logf(sum) + (largest - chosen);
    }
}

// One block adds up the losses, always in the same order.
__global__ __launch_bounds__(kThreads)
void mean_loss(const float* __restrict__ losses, float* __restrict__ y, int64_t rows) {
    float sum = 0.0f;
    for (int64_t r = threadIdx.x; r < rows; r += kThreads) sum += losses[r];
    sum = block_sum(sum);
    if (threadIdx.x == 0) *y = sum / rows;
}

extern "C" void cross_entropy_float32(const float* logits, const int64_t* targets, float* losses,
                                      float* y, int64_t rows, int64_t classes, hipStream_t stream) {
    row_loss<<<rows, kThreads, 0, stream>>>(logits, targets, losses, classes);
    mean_loss<<<1, kThreads, 0, stream>>>(losses, y, rows);
}

extern "C" void cross_entropy_bfloat16(const __hip_bfloat16* logits, const int64_t* targets,
                                       float* losses, float* y, int64_t rows, int64_t classes,
                                       hipStream_t stream) {
    row_loss<<<rows, kThreads, 0, stream>>>(logits, targets, losses, classes);
    mean_loss<<<1, kThreads, 0, stream>>>(losses, y, rows);
}
"""

kernels = hip(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        logits = logits.contiguous()
        rows, classes = logits.shape
        losses = logits.new_empty(rows, dtype=torch.float32)
        y = logits.new_empty((), dtype=torch.float32)
        half = logits.dtype == torch.bfloat16
        launch = kernels.cross_entropy_bfloat16 if half else kernels.cross_entropy_float32
        launch(logits, targets.contiguous(), losses, y, rows, classes)
        return y
