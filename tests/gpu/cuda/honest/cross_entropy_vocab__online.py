"""One pass over the logits: maximum and sum of exponentials are kept up to date together."""

import torch

from kernel_smith.inline import cuda

kernels = cuda(r"""
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cfloat>
#include <cmath>
#include <cstdint>

constexpr int kThreads = 512;

struct Running {
    float largest;
    float sum;  // of exponentials, relative to the largest
};

__device__ Running merged(Running a, Running b) {
    const float largest = fmaxf(a.largest, b.largest);
    return {largest, a.sum * expf(a.largest - largest) + b.sum * expf(b.largest - largest)};
}

template <typename T>
__global__ void losses_of(const T* __restrict__ logits, const int64_t* __restrict__ targets,
                          float* __restrict__ losses, int vocabulary) {
    __shared__ Running of_warp[kThreads / 32];
    const T* row = logits + blockIdx.x * int64_t(vocabulary);
    // Not infinity, whose difference with itself is no number.
    Running running = {-FLT_MAX, 0.0f};
    for (int v = threadIdx.x; v < vocabulary; v += kThreads) {
        const float logit = static_cast<float>(row[v]);
        if (logit > running.largest) {
            running.sum *= expf(running.largest - logit);
            running.largest = logit;
        }
        running.sum += expf(logit - running.largest);
    }
    for (int step = 16; step > 0; step /= 2) {
        const Running other = {__shfl_xor_sync(0xffffffffu, running.largest, step),
                               __shfl_xor_sync(0xffffffffu, running.sum, step)};
        running = merged(running, other);
    }
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = running;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < kThreads / 32; ++warp) running = merged(running, of_warp[warp]);
        const float chosen = static_cast<float>(row[targets[blockIdx.x]]);
        losses[blockIdx.x] = logf(running.sum) + (running.largest - chosen);
    }
}

extern "C" void losses_float32(const float* logits, const int64_t* targets, float* losses,
                               int64_t tokens, int vocabulary, cudaStream_t stream) {
    losses_of<<<dim3(unsigned(tokens)), kThreads, 0, stream>>>(logits, targets, losses,
                                                               vocabulary);
}

extern "C" void losses_bfloat16(const __nv_bfloat16* logits, const int64_t* targets, float* losses,
                                int64_t tokens, int vocabulary, cudaStream_t stream) {
    losses_of<<<dim3(unsigned(tokens)), kThreads, 0, stream>>>(logits, targets, losses,
                                                               vocabulary);
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, logits, targets):
        logits, targets = logits.contiguous(), targets.contiguous()
        tokens, vocabulary = logits.shape
        losses = torch.empty(tokens, dtype=torch.float32, device=logits.device)
        single = logits.dtype == torch.float32
        launch = kernels.losses_float32 if single else kernels.losses_bfloat16
        launch(logits, targets, losses, tokens, vocabulary)
        return losses
