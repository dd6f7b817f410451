"""A tile of 32 threads per row, with the reductions of cooperative groups."""

import torch

from kernel_smith.inline import cuda

DTYPES = [torch.float32, torch.float16, torch.bfloat16]

kernels = cuda(r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace cg = cooperative_groups;

constexpr int kThreads = 128;

template <typename T>
__global__ void norm_rows(const T* __restrict__ x, const T* __restrict__ weight,
                          const T* __restrict__ bias, T* __restrict__ y, int64_t rows,
                          int hidden) {
    const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    const int64_t row = blockIdx.x * int64_t(kThreads / 32) + threadIdx.x / 32;
    if (row >= rows) return;
    const T* in = x + row * hidden;
    T* out = y + row * hidden;
    const int lane = tile.thread_rank();
    float sum = 0.0f;
    for (int h = lane; h < hidden; h += 32) sum += static_cast<float>(in[h]);
    const float mean = cg::reduce(tile, sum, cg::plus<float>()) / hidden;
    float squares = 0.0f;
    for (int h = lane; h < hidden; h += 32) {
        const float distance = static_cast<float>(in[h]) - mean;
        squares += distance * distance;
    }
    const float variance = cg::reduce(tile, squares, cg::plus<float>()) / hidden;
    const float inverse = 1.0f / sqrtf(variance + 1e-6f);
    for (int h = lane; h < hidden; h += 32) {
        const float unit = (static_cast<float>(in[h]) - mean) * inverse;
        out[h] = static_cast<T>(unit * static_cast<float>(weight[h]) +
                                static_cast<float>(bias[h]));
    }
}

template <typename T>
void launch(const void* x, const void* weight, const void* bias, void* y, int64_t rows, int hidden,
            cudaStream_t stream) {
    const int64_t blocks = (rows + kThreads / 32 - 1) / (kThreads / 32);
    norm_rows<T><<<dim3(unsigned(blocks)), kThreads, 0, stream>>>(
        static_cast<const T*>(x), static_cast<const T*>(weight), static_cast<const T*>(bias),
        static_cast<T*>(y), rows, hidden);
}

extern "C" void layer_norm(const void* x, const void* weight, const void* bias, void* y,
                           int64_t rows, int hidden, int dtype, cudaStream_t stream) {
    if (dtype == 0) launch<float>(x, weight, bias, y, rows, hidden, stream);
    else if (dtype == 1) launch<__half>(x, weight, bias, y, rows, hidden, stream);
    else launch<__nv_bfloat16>(x, weight, bias, y, rows, hidden, stream);
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, hidden, dtype):
        super().__init__()
        self.weight = torch.nn.Parameter(1 + 0.3 * torch.randn(hidden, dtype=getattr(torch, dtype)))
        self.bias = torch.nn.Parameter(torch.randn(hidden, dtype=getattr(torch, dtype)))

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        hidden = x.shape[-1]
        rows = x.numel() // hidden
        kernels.layer_norm(x, self.weight, self.bias, y, rows, hidden, DTYPES.index(x.dtype))
        return y
