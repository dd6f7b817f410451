"""Keys on the caller's stream and values on one of the library's own, which is joined by events."""

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
    const int64_t request = blockIdx.y, words = int64_t(capacity) * row_words;
    const int64_t i = blockIdx.x * int64_t(kThreads) + threadIdx.x;
    if (i >= words) return;
    const bool is_new = i / row_words == lengths[request];
    out[request * words + i] =
        is_new ? fresh[request * row_words + i % row_words] : cache[request * words + i];
}

struct Side {
    cudaStream_t stream;
    cudaEvent_t begin, end;

    Side() {
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        cudaEventCreateWithFlags(&begin, cudaEventDisableTiming);
        cudaEventCreateWithFlags(&end, cudaEventDisableTiming);
    }
};

template <typename Word>
void launch(const void* cache, const void* fresh, const int64_t* lengths, void* out, int batch,
            int capacity, int row_words, cudaStream_t stream) {
    const int64_t words = int64_t(capacity) * row_words;
    const dim3 grid(unsigned((words + kThreads - 1) / kThreads), batch);
    write<<<grid, kThreads, 0, stream>>>(static_cast<const Word*>(cache),
                                         static_cast<const Word*>(fresh), lengths,
                                         static_cast<Word*>(out), capacity, row_words);
}

extern "C" void write_caches(const void* keys, const void* values, const void* new_key,
                             const void* new_value, const int64_t* lengths, void* out_keys,
                             void* out_values, int batch, int capacity, int row_elements,
                             int element_bytes, cudaStream_t stream) {
    static Side side;
    const auto chosen = element_bytes == 4 ? launch<uint32_t> : launch<uint16_t>;
    cudaEventRecord(side.begin, stream);
    cudaStreamWaitEvent(side.stream, side.begin, 0);
    chosen(keys, new_key, lengths, out_keys, batch, capacity, row_elements, stream);
    chosen(values, new_value, lengths, out_values, batch, capacity, row_elements, side.stream);
    cudaEventRecord(side.end, side.stream);
    cudaStreamWaitEvent(stream, side.end, 0);
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, keys, values, new_key, new_value, lengths):
        keys, values = keys.contiguous(), values.contiguous()
        new_key, new_value = new_key.contiguous(), new_value.contiguous()
        batch, capacity, heads, features = keys.shape
        out_keys, out_values = torch.empty_like(keys), torch.empty_like(values)
        kernels.write_caches(
            keys, values, new_key, new_value, lengths.contiguous(), out_keys, out_values,
            batch, capacity, heads * features, keys.element_size(),
        )
        return out_keys, out_values
