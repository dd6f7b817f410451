"""One block per row: scans within threads, warps and the block, and a sum carried along."""

import torch

from kernel_smith.inline import cuda

kernels = cuda(r"""
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;
constexpr int kPer = 4;
constexpr int kWarps = kThreads / 32;

__device__ float scan_warp(float value) {
    const int lane = threadIdx.x % 32;
    for (int step = 1; step < 32; step *= 2) {
        const float before = __shfl_up_sync(0xffffffffu, value, step);
        if (lane >= step) value += before;
    }
    return value;
}

__global__ void scan_rows(const float* __restrict__ x, float* __restrict__ y, int columns) {
    __shared__ float of_warp[kWarps];
    const float* in = x + blockIdx.x * int64_t(columns);
    float* out = y + blockIdx.x * int64_t(columns);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float carried = 0.0f;
    for (int start = 0; start < columns; start += kThreads * kPer) {
        float part[kPer];
        const int first = start + threadIdx.x * kPer;
        for (int k = 0; k < kPer; ++k) {
            part[k] = first + k < columns ? in[first + k] : 0.0f;
            if (k > 0) part[k] += part[k - 1];
        }
        const float through = scan_warp(part[kPer - 1]);
        if (lane == 31) of_warp[warp] = through;
        __syncthreads();
        float before = carried, total = 0.0f;
        for (int w = 0; w < kWarps; ++w) {
            if (w < warp) before += of_warp[w];
            total += of_warp[w];
        }
        const float left = __shfl_up_sync(0xffffffffu, through, 1);
        if (lane > 0) before += left;
        for (int k = 0; k < kPer; ++k) {
            if (first + k < columns) out[first + k] = before + part[k];
        }
        carried += total;
        __syncthreads();  // before the next round writes the sums of the warps
    }
}

extern "C" void cumulative_sum(const float* x, float* y, int64_t rows, int columns,
                               cudaStream_t stream) {
    scan_rows<<<dim3(unsigned(rows)), kThreads, 0, stream>>>(x, y, columns);
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        kernels.cumulative_sum(x, y, x.shape[0], x.shape[1])
        return y
