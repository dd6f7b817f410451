"""Value and number are packed into one integer, of which an atomic operation keeps the largest."""

import torch

from kernel_smith.inline import cuda

DTYPES = [torch.float32, torch.float16, torch.bfloat16]

kernels = cuda(r"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

using Key = unsigned long long;

constexpr int kThreads = 256;
constexpr int kPerBlock = 8192;

// Larger for larger values, and among equals for lower numbers; zero is below all of them.
__device__ Key key_of(float value, unsigned number) {
    const unsigned bits = __float_as_uint(value + 0.0f);  // one zero, not two
    const unsigned ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return Key(ordered) << 32 | (0xffffffffu - number);
}

template <typename T>
__global__ void find(const T* __restrict__ logits, Key* __restrict__ best, int vocabulary) {
    const T* row = logits + blockIdx.y * int64_t(vocabulary);
    const int begin = blockIdx.x * kPerBlock;
    const int end = begin + kPerBlock < vocabulary ? begin + kPerBlock : vocabulary;
    Key key = 0;
    for (int v = begin + threadIdx.x; v < end; v += kThreads) {
        const Key other = key_of(static_cast<float>(row[v]), unsigned(v));
        key = other > key ? other : key;
    }
    for (int step = 16; step > 0; step /= 2) {
        const Key other = __shfl_xor_sync(0xffffffffu, key, step);
        key = other > key ? other : key;
    }
    if (threadIdx.x % 32 == 0) atomicMax(best + blockIdx.y, key);
}

template <typename T>
__global__ void unpack(const T* __restrict__ logits, const Key* __restrict__ best,
                       int64_t* __restrict__ tokens, T* __restrict__ largest, int requests,
                       int vocabulary) {
    const int request = blockIdx.x * kThreads + threadIdx.x;
    if (request >= requests) return;
    const int64_t token = 0xffffffffu - unsigned(best[request] & 0xffffffffu);
    tokens[request] = token;
    largest[request] = logits[request * int64_t(vocabulary) + token];
}

template <typename T>
void launch(const void* logits, Key* best, int64_t* tokens, void* largest, int requests,
            int vocabulary, cudaStream_t stream) {
    const T* values = static_cast<const T*>(logits);
    const dim3 grid((vocabulary + kPerBlock - 1) / kPerBlock, requests);
    find<T><<<grid, kThreads, 0, stream>>>(values, best, vocabulary);
    unpack<T><<<(requests + kThreads - 1) / kThreads, kThreads, 0, stream>>>(
        values, best, tokens, static_cast<T*>(largest), requests, vocabulary);
}

extern "C" void greedy(const void* logits, void* best, int64_t* tokens, void* largest,
                       int requests, int vocabulary, int dtype, cudaStream_t stream) {
    cudaMemsetAsync(best, 0, sizeof(Key) * requests, stream);
    const auto chosen = dtype == 0   ? launch<float>
                        : dtype == 1 ? launch<__half>
                                     : launch<__nv_bfloat16>;
    chosen(logits, static_cast<Key*>(best), tokens, largest, requests, vocabulary, stream);
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, logits):
        logits = logits.contiguous()
        requests, vocabulary = logits.shape
        best = logits.new_empty(requests, dtype=torch.int64)
        tokens = logits.new_empty(requests, dtype=torch.int64)
        largest = logits.new_empty(requests)
        code = DTYPES.index(logits.dtype)
        kernels.greedy(logits, best, tokens, largest, requests, vocabulary, code)
        return tokens, largest
