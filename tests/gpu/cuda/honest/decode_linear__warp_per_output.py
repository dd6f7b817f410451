"""A warp per output reads its weights once for up to eight tokens and adds in single precision."""

import torch

from kernel_smith.inline import cuda

DTYPES = [torch.float32, torch.float16, torch.bfloat16]

kernels = cuda(r"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kWarps = 8;
constexpr int kTokens = 8;

template <typename T>
__global__ void multiply(const T* __restrict__ x, const T* __restrict__ weight, T* __restrict__ y,
                         int tokens, int inputs, int outputs) {
    const int output = blockIdx.x * kWarps + threadIdx.y;
    if (output >= outputs) return;
    const int first = blockIdx.y * kTokens;
    const T* own = weight + int64_t(output) * inputs;
    float sums[kTokens] = {};
    for (int i = threadIdx.x; i < inputs; i += 32) {
        const float w = static_cast<float>(own[i]);
#pragma unroll
        for (int t = 0; t < kTokens; ++t) {
            if (first + t < tokens) {
                sums[t] += w * static_cast<float>(x[int64_t(first + t) * inputs + i]);
            }
        }
    }
#pragma unroll
    for (int t = 0; t < kTokens; ++t) {
        float sum = sums[t];
        for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
        if (threadIdx.x == 0 && first + t < tokens) {
            y[int64_t(first + t) * outputs + output] = static_cast<T>(sum);
        }
    }
}

template <typename T>
void launch(const void* x, const void* weight, void* y, int tokens, int inputs, int outputs,
            cudaStream_t stream) {
    const dim3 grid((outputs + kWarps - 1) / kWarps, (tokens + kTokens - 1) / kTokens);
    multiply<T><<<grid, dim3(32, kWarps), 0, stream>>>(static_cast<const T*>(x),
                                                       static_cast<const T*>(weight),
                                                       static_cast<T*>(y), tokens, inputs, outputs);
}

extern "C" void linear(const void* x, const void* weight, void* y, int tokens, int inputs,
                       int outputs, int dtype, cudaStream_t stream) {
    if (dtype == 0) launch<float>(x, weight, y, tokens, inputs, outputs, stream);
    else if (dtype == 1) launch<__half>(x, weight, y, tokens, inputs, outputs, stream);
    else launch<__nv_bfloat16>(x, weight, y, tokens, inputs, outputs, stream);
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, outputs, dtype):
        super().__init__()
        weight = torch.randn(outputs, inputs, dtype=getattr(torch, dtype)) * inputs**-0.5
        self.weight = torch.nn.Parameter(weight)

    def forward(self, x):
        x = x.contiguous()
        tokens, inputs = x.shape
        outputs = self.weight.shape[0]
        y = x.new_empty(tokens, outputs)
        kernels.linear(x, self.weight, y, tokens, inputs, outputs, DTYPES.index(x.dtype))
        return y
