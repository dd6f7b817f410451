"""The size of a block and the elements per thread are constants that a tuner may change."""

import torch

from kernel_smith.inline import cuda

TUNABLES = {"kThreads": [64, 128, 256, 512], "kPerThread": [1, 2, 4, 8]}

kernels = cuda(r"""
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;
constexpr int kPerThread = 4;

template <typename T>
__global__ void __launch_bounds__(kThreads)
    squared_relu(const T* __restrict__ x, const T* __restrict__ bias, T* __restrict__ y,
                 int64_t count, int width) {
    const int64_t first = blockIdx.x * int64_t(kThreads * kPerThread) + threadIdx.x;
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) {
        const int64_t i = first + k * kThreads;
        if (i < count) {
            const float v = static_cast<float>(x[i]) + static_cast<float>(bias[i % width]);
            const float positive = fmaxf(v, 0.0f);
            y[i] = static_cast<T>(positive * positive);
        }
    }
}

static unsigned blocks_for(int64_t count) {
    return unsigned((count + kThreads * kPerThread - 1) / (kThreads * kPerThread));
}

extern "C" void squared_relu_float32(const float* x, const float* bias, float* y, int64_t count,
                                     int width, cudaStream_t stream) {
    squared_relu<<<blocks_for(count), kThreads, 0, stream>>>(x, bias, y, count, width);
}

extern "C" void squared_relu_bfloat16(const __nv_bfloat16* x, const __nv_bfloat16* bias,
                                      __nv_bfloat16* y, int64_t count, int width,
                                      cudaStream_t stream) {
    squared_relu<<<blocks_for(count), kThreads, 0, stream>>>(x, bias, y, count, width);
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, intermediate, dtype):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(intermediate, dtype=getattr(torch, dtype)))

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        single = x.dtype == torch.float32
        launch = kernels.squared_relu_float32 if single else kernels.squared_relu_bfloat16
        launch(x, self.bias, y, x.numel(), x.shape[-1])
        return y
