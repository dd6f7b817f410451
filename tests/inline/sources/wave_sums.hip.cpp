// Reductions on waves of 64 threads, with HIP's shuffles, which have no mask.
#include <hip/hip_runtime.h>
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <cstdint>

__device__ float wave_sum(float value) {
    for (int offset = warpSize / 2; offset > 0; offset >>= 1) value += __shfl_xor(value, offset);
    return value;
}
__device__ float block_sum(float value) {
    __shared__ float partial[16];
    int lane = threadIdx.x % warpSize;
    int wave = threadIdx.x / warpSize;
    value = wave_sum(value);
    if (lane == 0) partial[wave] = value;
    __syncthreads();
    int waves = blockDim.x / warpSize;
    return wave_sum(lane < waves ? partial[lane] : 0.0f);
}

__global__ void wave_rows(const float* x, float* y) {
    float sum = x[blockIdx.x * blockDim.x + threadIdx.x];
    for (int offset = 32; offset > 0; offset >>= 1) sum += __shfl_down(sum, offset);
    if (__lane_id() == 0) y[(blockIdx.x * blockDim.x + threadIdx.x) / warpSize] = sum;
}
__global__ void __launch_bounds__(256) block_rows(const __half* x, float* y, int64_t columns) {
    float sum = 0.0f;
    for (int64_t c = threadIdx.x; c < columns; c += blockDim.x) {
        sum += __half2float(x[blockIdx.x * columns + c]);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
__global__ void count_positive(const float* x, int64_t* y) {
    unsigned long long positive = __ballot(x[threadIdx.x] > 0);
    if (__lane_id() == 0) y[threadIdx.x / warpSize] = __popcll(positive);
}
// The last step of many block reductions: a few lanes of the first wave, and nobody else.
__global__ void few_lanes(const float* x, float* y) {
    if (threadIdx.x < 4) {
        float sum = x[threadIdx.x];
        for (int offset = 2; offset > 0; offset >>= 1) sum += __shfl_down(sum, offset);
        if (threadIdx.x == 0) y[0] = sum;
    }
}

extern "C" hipError_t launch_wave_rows(const float* x, float* y, int64_t n, int threads, hipStream_t s) {
    hipLaunchKernelGGL(wave_rows, dim3(n / threads), dim3(threads), 0, s, x, y);
    return hipGetLastError();
}
extern "C" hipError_t launch_block_rows(const __half* x, float* y, int64_t rows, int64_t columns,
                                        hipStream_t s) {
    block_rows<<<rows, 256, 0, s>>>(x, y, columns);
    return hipGetLastError();
}
extern "C" hipError_t launch_count_positive(const float* x, int64_t* y, hipStream_t s) {
    count_positive<<<1, 128, 0, s>>>(x, y);
    return hipGetLastError();
}
extern "C" hipError_t launch_few_lanes(const float* x, float* y, hipStream_t s) {
    few_lanes<<<1, 64, 0, s>>>(x, y);
    return hipGetLastError();
}
