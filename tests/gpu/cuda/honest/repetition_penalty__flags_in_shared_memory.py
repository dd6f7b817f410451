"""A block per request marks the produced tokens in shared memory, a byte for each of the
vocabulary: far more than the 48 KiB that a launch may have unasked."""

import torch

from kernel_smith.inline import cuda

kernels = cuda(r"""
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int kThreads = 1024;
constexpr int kUnasked = 48 * 1024;

template <typename T>
__global__ void __launch_bounds__(kThreads)
    penalise(const T* __restrict__ logits, const int64_t* __restrict__ tokens,
             const float* __restrict__ penalty, const float* __restrict__ temperature,
             float* __restrict__ y, int vocabulary, int produced) {
    extern __shared__ unsigned char seen[];
    const int64_t request = blockIdx.x;
    for (int v = threadIdx.x; v < vocabulary; v += kThreads) seen[v] = 0;
    __syncthreads();
    for (int p = threadIdx.x; p < produced; p += kThreads) seen[tokens[request * produced + p]] = 1;
    __syncthreads();
    const float factor = penalty[request], heat = temperature[request];
    for (int v = threadIdx.x; v < vocabulary; v += kThreads) {
        float logit = static_cast<float>(logits[request * vocabulary + v]);
        if (seen[v]) logit = logit > 0.0f ? logit / factor : logit * factor;
        y[request * vocabulary + v] = logit / heat;
    }
}

template <typename T>
int launch(const T* logits, const int64_t* tokens, const float* penalty, const float* temperature,
           float* y, int requests, int vocabulary, int produced, cudaStream_t stream) {
    if (vocabulary > kUnasked) {
        const cudaError_t refused = cudaFuncSetAttribute(
            penalise<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, vocabulary);
        if (refused != cudaSuccess) return int(refused);
    }
    penalise<T><<<requests, kThreads, vocabulary, stream>>>(logits, tokens, penalty, temperature, y,
                                                            vocabulary, produced);
    return int(cudaGetLastError());
}

extern "C" int penalise_float32(const float* logits, const int64_t* tokens, const float* penalty,
                                const float* temperature, float* y, int requests, int vocabulary,
                                int produced, cudaStream_t stream) {
    return launch(logits, tokens, penalty, temperature, y, requests, vocabulary, produced, stream);
}

extern "C" int penalise_float16(const __half* logits, const int64_t* tokens, const float* penalty,
                                const float* temperature, float* y, int requests, int vocabulary,
                                int produced, cudaStream_t stream) {
    return launch(logits, tokens, penalty, temperature, y, requests, vocabulary, produced, stream);
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, logits, tokens, penalty, temperature):
        logits, tokens = logits.contiguous(), tokens.contiguous()
        penalty, temperature = penalty.contiguous(), temperature.contiguous()
        requests, vocabulary = logits.shape
        y = torch.empty(requests, vocabulary, dtype=torch.float32, device=logits.device)
        single = logits.dtype == torch.float32
        launch = kernels.penalise_float32 if single else kernels.penalise_float16
        failed = launch(
            logits, tokens, penalty, temperature, y, requests, vocabulary, tokens.shape[1]
        )
        if failed:
            raise RuntimeError(f"launch failed: {failed}")
        return y
