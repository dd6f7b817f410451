"""A block per token; a thread turns one pair of features in as many heads as come to it."""

import torch

from kernel_smith.inline import cuda

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
POSITIONS = 4096

kernels = cuda(r"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

template <typename T>
__device__ void turn_heads(const T* __restrict__ x, T* __restrict__ y, int heads, int half,
                           const T* __restrict__ cosines, const T* __restrict__ sines) {
    for (int i = threadIdx.x; i < heads * half; i += kThreads) {
        const int head = i / half, f = i % half;
        const int at = head * 2 * half + f;
        const float low = static_cast<float>(x[at]), high = static_cast<float>(x[at + half]);
        const float c = static_cast<float>(cosines[f]), s = static_cast<float>(sines[f]);
        y[at] = static_cast<T>(low * c - high * s);
        y[at + half] = static_cast<T>(high * c + low * s);
    }
}

template <typename T>
__global__ void rotate(const T* query, const T* key, const int64_t* __restrict__ positions,
                       const T* cosines, const T* sines, T* query_out, T* key_out,
                       int query_heads, int key_heads, int half) {
    const int64_t token = blockIdx.x, position = positions[token];
    const T* c = cosines + position * half;
    const T* s = sines + position * half;
    const int64_t of_query = token * query_heads * 2 * half;
    const int64_t of_key = token * key_heads * 2 * half;
    turn_heads(query + of_query, query_out + of_query, query_heads, half, c, s);
    turn_heads(key + of_key, key_out + of_key, key_heads, half, c, s);
}

template <typename T>
void launch(const void* query, const void* key, const int64_t* positions, const void* cosines,
            const void* sines, void* query_out, void* key_out, int64_t tokens, int query_heads,
            int key_heads, int half, cudaStream_t stream) {
    rotate<T><<<dim3(unsigned(tokens)), kThreads, 0, stream>>>(
        static_cast<const T*>(query), static_cast<const T*>(key), positions,
        static_cast<const T*>(cosines), static_cast<const T*>(sines), static_cast<T*>(query_out),
        static_cast<T*>(key_out), query_heads, key_heads, half);
}

extern "C" void rotary(const void* query, const void* key, const int64_t* positions,
                       const void* cosines, const void* sines, void* query_out, void* key_out,
                       int64_t tokens, int query_heads, int key_heads, int half, int dtype,
                       cudaStream_t stream) {
    const auto chosen = dtype == 0   ? launch<float>
                        : dtype == 1 ? launch<__half>
                                     : launch<__nv_bfloat16>;
    chosen(query, key, positions, cosines, sines, query_out, key_out, tokens, query_heads,
           key_heads, half, stream);
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, features, dtype):
        super().__init__()
        frequencies = 10000.0 ** -(torch.arange(0, features, 2, dtype=torch.float64) / features)
        angles = torch.arange(POSITIONS, dtype=torch.float64)[:, None] * frequencies
        self.register_buffer("cosines", angles.cos().to(getattr(torch, dtype)))
        self.register_buffer("sines", angles.sin().to(getattr(torch, dtype)))

    def forward(self, query, key, positions):
        query, key, positions = query.contiguous(), key.contiguous(), positions.contiguous()
        tokens, query_heads, features = query.shape
        query_out, key_out = torch.empty_like(query), torch.empty_like(key)
        kernels.rotary(
            query, key, positions, self.cosines, self.sines, query_out, key_out, tokens,
            query_heads, key.shape[1], features // 2, DTYPES.index(query.dtype),
        )
        return query_out, key_out
