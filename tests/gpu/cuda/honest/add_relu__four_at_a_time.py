"""Sixteen bytes per access where the addresses allow it; a second kernel does what is left."""

import torch

from kernel_smith.inline import cuda

kernels = cuda(r"""
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

__device__ float add_relu(float a, float b) { return fmaxf(a + b, 0.0f); }

__global__ void by_fours(const float4* __restrict__ x, const float4* __restrict__ y,
                         float4* __restrict__ z, int64_t count) {
    const int64_t i = blockIdx.x * int64_t(kThreads) + threadIdx.x;
    if (i >= count) return;
    const float4 a = x[i], b = y[i];
    z[i] = make_float4(add_relu(a.x, b.x), add_relu(a.y, b.y), add_relu(a.z, b.z),
                       add_relu(a.w, b.w));
}

__global__ void one_by_one(const float* __restrict__ x, const float* __restrict__ y,
                           float* __restrict__ z, int64_t first, int64_t count) {
    const int64_t i = first + blockIdx.x * int64_t(kThreads) + threadIdx.x;
    if (i < count) z[i] = add_relu(x[i], y[i]);
}

static int blocks_for(int64_t count) { return int((count + kThreads - 1) / kThreads); }

extern "C" void add_relu_all(const float* x, const float* y, float* z, int64_t count,
                             cudaStream_t stream) {
    const uintptr_t addresses = uintptr_t(x) | uintptr_t(y) | uintptr_t(z);
    const int64_t fours = addresses % sizeof(float4) == 0 ? count / 4 : 0;
    if (fours > 0) {
        by_fours<<<blocks_for(fours), kThreads, 0, stream>>>(
            reinterpret_cast<const float4*>(x), reinterpret_cast<const float4*>(y),
            reinterpret_cast<float4*>(z), fours);
    }
    const int64_t left = count - 4 * fours;
    if (left > 0) {
        one_by_one<<<blocks_for(left), kThreads, 0, stream>>>(x, y, z, 4 * fours, count);
    }
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        x, y = x.contiguous(), y.contiguous()
        z = torch.empty_like(x)
        kernels.add_relu_all(x, y, z, x.numel())
        return z
