"""Eight blocks of a cluster share a row and read one another's results from shared memory."""

import torch

from kernel_smith.inline import cuda

DTYPES = [torch.float32, torch.float16, torch.bfloat16]

kernels = cuda(r"""
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

namespace cg = cooperative_groups;

constexpr int kThreads = 512;
constexpr int kBlocks = 8;

template <typename Combine>
__device__ float over_block(float value, Combine combine) {
    __shared__ float of_warp[kThreads / 32];
    for (int step = 16; step > 0; step /= 2) {
        value = combine(value, __shfl_xor_sync(0xffffffffu, value, step));
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    float result = of_warp[0];
    for (int warp = 1; warp < kThreads / 32; ++warp) result = combine(result, of_warp[warp]);
    return result;
}

struct Largest {
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

struct Sum {
    __device__ float operator()(float a, float b) const { return a + b; }
};

template <typename T>
__global__ void __cluster_dims__(kBlocks, 1, 1) __launch_bounds__(kThreads)
    softmax_rows(const T* __restrict__ logits, const float* __restrict__ temperature,
                 float* __restrict__ y, int vocabulary) {
    __shared__ float largest_here, sum_here;
    const auto cluster = cg::this_cluster();
    const int64_t row = blockIdx.x / kBlocks;
    const int piece = (vocabulary + kBlocks - 1) / kBlocks;
    const int begin = int(cluster.block_rank()) * piece;
    const int end = begin + piece < vocabulary ? begin + piece : vocabulary;
    const T* in = logits + row * vocabulary;
    const float heat = temperature[row];

    float largest = -INFINITY;
    for (int v = begin + threadIdx.x; v < end; v += kThreads) {
        largest = fmaxf(largest, static_cast<float>(in[v]) / heat);
    }
    largest = over_block(largest, Largest());
    if (threadIdx.x == 0) largest_here = largest;
    cluster.sync();
    for (int b = 0; b < kBlocks; ++b) {
        largest = fmaxf(largest, *cluster.map_shared_rank(&largest_here, b));
    }
    float sum = 0.0f;
    for (int v = begin + threadIdx.x; v < end; v += kThreads) {
        sum += expf(static_cast<float>(in[v]) / heat - largest);
    }
    sum = over_block(sum, Sum());
    if (threadIdx.x == 0) sum_here = sum;
    cluster.sync();
    sum = 0.0f;
    for (int b = 0; b < kBlocks; ++b) sum += *cluster.map_shared_rank(&sum_here, b);
    for (int v = begin + threadIdx.x; v < end; v += kThreads) {
        y[row * vocabulary + v] = expf(static_cast<float>(in[v]) / heat - largest) / sum;
    }
    cluster.sync();  // nobody leaves while its memory may be read
}

template <typename T>
void launch(const void* logits, const float* temperature, float* y, int requests, int vocabulary,
            cudaStream_t stream) {
    softmax_rows<T><<<requests * kBlocks, kThreads, 0, stream>>>(static_cast<const T*>(logits),
                                                                 temperature, y, vocabulary);
}

extern "C" void softmax(const void* logits, const float* temperature, float* y, int requests,
                        int vocabulary, int dtype, cudaStream_t stream) {
    if (dtype == 0) launch<float>(logits, temperature, y, requests, vocabulary, stream);
    else if (dtype == 1) launch<__half>(logits, temperature, y, requests, vocabulary, stream);
    else launch<__nv_bfloat16>(logits, temperature, y, requests, vocabulary, stream);
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, logits, temperature):
        logits, temperature = logits.contiguous(), temperature.contiguous()
        requests, vocabulary = logits.shape
        y = torch.empty(requests, vocabulary, dtype=torch.float32, device=logits.device)
        code = DTYPES.index(logits.dtype)
        kernels.softmax(logits, temperature, y, requests, vocabulary, code)
        return y
