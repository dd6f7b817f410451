"""A thread keeps its share of the row in registers between the two passes."""

import torch

from kernel_smith.inline import cuda

DTYPES = [torch.float32, torch.float16, torch.bfloat16]

kernels = cuda(r"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

constexpr int kThreads = 512;
constexpr int kMost = 16;  // per thread, so rows of up to 8192

template <typename T>
__global__ void __launch_bounds__(kThreads)
    quantise(const T* __restrict__ x, int8_t* __restrict__ values, float* __restrict__ scales,
             int hidden) {
    __shared__ unsigned largest_bits;
    if (threadIdx.x == 0) largest_bits = 0;
    __syncthreads();
    const int64_t start = blockIdx.x * int64_t(hidden);
    float own[kMost];
    float largest = 0.0f;
#pragma unroll
    for (int k = 0; k < kMost; ++k) {
        const int h = k * kThreads + threadIdx.x;
        own[k] = h < hidden ? static_cast<float>(x[start + h]) : 0.0f;
        largest = fmaxf(largest, fabsf(own[k]));
    }
    // Numbers that are not negative are ordered like their bits.
    const unsigned bits = __reduce_max_sync(0xffffffffu, __float_as_uint(largest));
    if (threadIdx.x % 32 == 0) atomicMax(&largest_bits, bits);
    __syncthreads();
    largest = __uint_as_float(largest_bits);
    int exponent = 0;
    if (largest > 0.0f) {
        const float mantissa = frexpf(largest, &exponent);
        exponent += (mantissa > 127.0f / 128.0f) - 7;
    }
    if (threadIdx.x == 0) scales[blockIdx.x] = ldexpf(1.0f, exponent);
#pragma unroll
    for (int k = 0; k < kMost; ++k) {
        const int h = k * kThreads + threadIdx.x;
        if (h < hidden) values[start + h] = int8_t(__float2int_rn(ldexpf(own[k], -exponent)));
    }
}

template <typename T>
void launch(const void* x, int8_t* values, float* scales, int64_t tokens, int hidden,
            cudaStream_t stream) {
    quantise<T><<<dim3(unsigned(tokens)), kThreads, 0, stream>>>(static_cast<const T*>(x), values,
                                                                 scales, hidden);
}

extern "C" int quantise_tokens(const void* x, int8_t* values, float* scales, int64_t tokens,
                               int hidden, int dtype, cudaStream_t stream) {
    if (hidden > kThreads * kMost) return 1;
    if (dtype == 0) launch<float>(x, values, scales, tokens, hidden, stream);
    else if (dtype == 1) launch<__half>(x, values, scales, tokens, hidden, stream);
    else launch<__nv_bfloat16>(x, values, scales, tokens, hidden, stream);
    return int(cudaGetLastError());
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        tokens, hidden = x.shape
        values = torch.empty(tokens, hidden, dtype=torch.int8, device=x.device)
        scales = torch.empty(tokens, 1, dtype=torch.float32, device=x.device)
        code = DTYPES.index(x.dtype)
        failed = kernels.quantise_tokens(x, values, scales, tokens, hidden, code)
        if failed:
            raise RuntimeError(f"launch failed: {failed}")
        return values, scales
