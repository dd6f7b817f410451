"""A warp per token takes the best one after the other, the lowest number among equals."""

import torch

from kernel_smith.inline import cuda

kernels = cuda(r"""
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

constexpr int kWarps = 4;
constexpr int kMostExperts = 256;
constexpr int kMostGroups = 32;
constexpr unsigned kAll = 0xffffffffu;

struct Best {
    float value;
    int number;
};

__device__ Best better(Best a, Best b) {
    const bool second = b.value > a.value || (b.value == a.value && b.number < a.number);
    return second ? b : a;
}

__device__ Best best_of_warp(Best best) {
    for (int step = 16; step > 0; step /= 2) {
        const Best other = {__shfl_xor_sync(kAll, best.value, step),
                            __shfl_xor_sync(kAll, best.number, step)};
        best = better(best, other);
    }
    return best;
}

// The sum of the two largest of some values.
__device__ float two_largest(const float* values, int count, int lane) {
    float first = -INFINITY, second = -INFINITY;
    for (int i = lane; i < count; i += 32) {
        second = fmaxf(second, fminf(first, values[i]));
        first = fmaxf(first, values[i]);
    }
    for (int step = 16; step > 0; step /= 2) {
        const float other_first = __shfl_xor_sync(kAll, first, step);
        const float other_second = __shfl_xor_sync(kAll, second, step);
        second = fmaxf(fminf(first, other_first), fmaxf(second, other_second));
        first = fmaxf(first, other_first);
    }
    return first + second;
}

__global__ void route(const float* __restrict__ logits, const float* __restrict__ bias,
                      float* __restrict__ weights, int* __restrict__ chosen_experts,
                      int64_t tokens, int experts, int groups, int chosen_groups, int chosen,
                      float factor) {
    __shared__ float all_scores[kWarps][kMostExperts];
    __shared__ float all_biased[kWarps][kMostExperts];
    const int lane = threadIdx.x, group_size = experts / groups;
    float* scores = all_scores[threadIdx.y];
    float* biased = all_biased[threadIdx.y];
    const int64_t token = blockIdx.x * int64_t(kWarps) + threadIdx.y;
    if (token >= tokens) return;
    for (int e = lane; e < experts; e += 32) {
        scores[e] = 1.0f / (1.0f + expf(-logits[token * experts + e]));
        biased[e] = scores[e] + bias[e];
    }
    __syncwarp();

    float group_score = -INFINITY;  // lane g has that of group g
    for (int g = 0; g < groups; ++g) {
        const float score = two_largest(biased + g * group_size, group_size, lane);
        if (lane == g) group_score = score;
    }
    unsigned open = 0;
    for (int i = 0; i < chosen_groups; ++i) {
        const bool is_closed = lane < groups && !(open >> lane & 1);
        const Best mine = {is_closed ? group_score : -INFINITY, is_closed ? lane : kMostGroups};
        open |= 1u << best_of_warp(mine).number;
    }
    float sum = 0.0f, own_score = 0.0f;
    int own_number = 0;
    for (int i = 0; i < chosen; ++i) {
        Best best = {-INFINITY, kMostExperts};
        for (int e = lane; e < experts; e += 32) {
            if (open >> (e / group_size) & 1) best = better(best, Best{biased[e], e});
        }
        best = best_of_warp(best);
        const float score = scores[best.number];
        sum += score;
        if (lane == i) {
            own_score = score;
            own_number = best.number;
        }
        __syncwarp();
        if (lane == 0) biased[best.number] = -INFINITY;
        __syncwarp();
    }
    if (lane < chosen) {
        weights[token * chosen + lane] = own_score / sum * factor;
        chosen_experts[token * chosen + lane] = own_number;
    }
}

extern "C" void route_tokens(const float* logits, const float* bias, float* weights, int* experts,
                             int64_t tokens, int count, int groups, int chosen_groups, int chosen,
                             float factor, cudaStream_t stream) {
    const int64_t blocks = (tokens + kWarps - 1) / kWarps;
    route<<<dim3(unsigned(blocks)), dim3(32, kWarps), 0, stream>>>(
        logits, bias, weights, experts, tokens, count, groups, chosen_groups, chosen, factor);
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self, experts, groups, chosen_groups, chosen):
        super().__init__()
        self.groups, self.chosen_groups, self.chosen = groups, chosen_groups, chosen
        self.factor = 2.5
        self.bias = torch.nn.Parameter(torch.randn(experts) * 0.1)

    def forward(self, logits):
        logits = logits.contiguous()
        tokens, experts = logits.shape
        weights = torch.empty(tokens, self.chosen, dtype=logits.dtype, device=logits.device)
        numbers = torch.empty(tokens, self.chosen, dtype=torch.int32, device=logits.device)
        kernels.route_tokens(
            logits, self.bias, weights, numbers, tokens, experts, self.groups,
            self.chosen_groups, self.chosen, self.factor,
        )
        return weights, numbers
