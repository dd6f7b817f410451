"""Copies both caches in the widest words that rows and addresses allow, whatever the dtype."""

import torch

from kernel_smith.inline import cuda

kernels = cuda(r"""
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 256;

template <typename Word>
__global__ void write(const Word* __restrict__ cache, const Word* __restrict__ fresh,
                      const int64_t* __restrict__ lengths, Word* __restrict__ out, int capacity,
                      int row_words) {
    const int64_t request = blockIdx.y;
    const int64_t words = int64_t(capacity) * row_words;
    const int64_t new_row = lengths[request];
    const int64_t stride = int64_t(gridDim.x) * kThreads;
    for (int64_t i = blockIdx.x * int64_t(kThreads) + threadIdx.x; i < words; i += stride) {
        const bool is_new = i / row_words == new_row;
        out[request * words + i] =
            is_new ? fresh[request * row_words + i % row_words] : cache[request * words + i];
    }
}

template <typename Word>
void launch(const void* cache, const void* fresh, const int64_t* lengths, void* out, int batch,
            int capacity, int row_bytes, cudaStream_t stream) {
    const int row_words = row_bytes / int(sizeof(Word));
    const int64_t words = int64_t(capacity) * row_words;
    const unsigned blocks = unsigned((words + 4 * kThreads - 1) / (4 * kThreads));
    write<Word><<<dim3(blocks, batch), kThreads, 0, stream>>>(
        static_cast<const Word*>(cache), static_cast<const Word*>(fresh), lengths,
        static_cast<Word*>(out), capacity, row_words);
}

extern "C" void write_cache(const void* cache, const void* fresh, const int64_t* lengths, void* out,
                            int batch, int capacity, int row_bytes, cudaStream_t stream) {
    const uintptr_t bits = uintptr_t(cache) | uintptr_t(fresh) | uintptr_t(out) | row_bytes;
    const auto chosen = bits % 16 == 0 ? launch<uint4> : launch<uint16_t>;
    chosen(cache, fresh, lengths, out, batch, capacity, row_bytes, stream);
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, keys, values, new_key, new_value, lengths):
        keys, values = keys.contiguous(), values.contiguous()
        new_key, new_value = new_key.contiguous(), new_value.contiguous()
        lengths = lengths.contiguous()
        batch, capacity, heads, features = keys.shape
        row_bytes = heads * features * keys.element_size()
        out_keys, out_values = torch.empty_like(keys), torch.empty_like(values)
        kernels.write_cache(keys, new_key, lengths, out_keys, batch, capacity, row_bytes)
        kernels.write_cache(values, new_value, lengths, out_values, batch, capacity, row_bytes)
        return out_keys, out_values
