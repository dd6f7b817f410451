"""One block per token keeps the sums in shared memory; templates over the dtype."""

import torch

from kernel_smith.inline import cuda

DTYPES = [torch.float32, torch.float16, torch.bfloat16]

kernels = cuda(r"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 512;

__device__ float block_sum(float value) {
    __shared__ float of_warp[kThreads / 32];
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    float result = 0.0f;
    for (int warp = 0; warp < kThreads / 32; ++warp) result += of_warp[warp];
    return result;
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    add_norm(const T* __restrict__ x, const T* __restrict__ residual, const T* __restrict__ weight,
             T* __restrict__ normalised, T* __restrict__ total, int hidden) {
    extern __shared__ float row[];
    const int64_t start = blockIdx.x * int64_t(hidden);
    float squares = 0.0f;
    for (int h = threadIdx.x; h < hidden; h += kThreads) {
        const T sum = static_cast<T>(static_cast<float>(x[start + h]) +
                                     static_cast<float>(residual[start + h]));
        total[start + h] = sum;
        row[h] = static_cast<float>(sum);
        squares += row[h] * row[h];
    }
    const float inverse = 1.0f / sqrtf(block_sum(squares) / hidden + 1e-6f);
    for (int h = threadIdx.x; h < hidden; h += kThreads) {
        normalised[start + h] =
            static_cast<T>(row[h] * inverse * static_cast<float>(weight[h]));
    }
}

template <typename T>
void launch(const void* x, const void* residual, const void* weight, void* normalised,
            void* total, int64_t tokens, int hidden, cudaStream_t stream) {
    add_norm<T><<<dim3(unsigned(tokens)), kThreads, sizeof(float) * hidden, stream>>>(
        static_cast<const T*>(x), static_cast<const T*>(residual), static_cast<const T*>(weight),
        static_cast<T*>(normalised), static_cast<T*>(total), hidden);
}

extern "C" void add_rms_norm(const void* x, const void* residual, const void* weight,
                             void* normalised, void* total, int64_t tokens, int hidden, int dtype,
                             cudaStream_t stream) {
    if (dtype == 0) {
        launch<float>(x, residual, weight, normalised, total, tokens, hidden, stream);
    } else if (dtype == 1) {
        launch<__half>(x, residual, weight, normalised, total, tokens, hidden, stream);
    } else {
        launch<__nv_bfloat16>(x, residual, weight, normalised, total, tokens, hidden, stream);
    }
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, hidden, dtype):
        super().__init__()
        self.weight = torch.nn.Parameter(1 + 0.3 * torch.randn(hidden, dtype=getattr(torch, dtype)))

    def forward(self, x, residual):
        x, residual = x.contiguous(), residual.contiguous()
        normalised, total = torch.empty_like(x), torch.empty_like(x)
        tokens, hidden = x.shape
        kernels.add_rms_norm(
            x, residual, self.weight, normalised, total, tokens, hidden, DTYPES.index(x.dtype)
        )
        return normalised, total
