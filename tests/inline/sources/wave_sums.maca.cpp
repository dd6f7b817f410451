// Reductions on waves of 64 threads: over a wave, over a block, and a softmax by rows.
#include <mc_runtime.h>
#include <common/maca_bfloat16.h>
#include <common/maca_fp16.h>
#include <cstdint>

constexpr unsigned long long kAll = 0xffffffffffffffffull;

__device__ float wave_sum(float value) {
    for (int offset = warpSize / 2; offset > 0; offset /= 2) {
        value += __shfl_xor_sync(kAll, value, offset);
    }
    return value;
}
__device__ float wave_max(float value) {
    for (int offset = warpSize / 2; offset > 0; offset /= 2) {
        value = fmaxf(value, __shfl_xor_sync(kAll, value, offset));
    }
    return value;
}
template <typename Combine>
__device__ float block_reduce(float value, float neutral, Combine combine) {
    __shared__ float partial[16];
    int lane = threadIdx.x % warpSize;
    int wave = threadIdx.x / warpSize;
    value = combine(value);
    __syncthreads();
    if (lane == 0) partial[wave] = value;
    __syncthreads();
    int waves = (blockDim.x + warpSize - 1) / warpSize;
    return combine(lane < waves ? partial[lane] : neutral);
}

// One wave per row of 64.
__global__ void wave_rows(const float* x, float* y) {
    float sum = wave_sum(x[blockIdx.x * blockDim.x + threadIdx.x]);
    if (threadIdx.x % warpSize == 0) {
        y[(blockIdx.x * blockDim.x + threadIdx.x) / warpSize] = sum;
    }
}
// Positions of the positive numbers of each row of 64, shifted and compared in other ways.
__global__ void wave_votes(const float* x, int64_t* y) {
    float value = x[threadIdx.x];
    unsigned long long positive = __ballot_sync(kAll, value > 0);
    float below = __shfl_up_sync(kAll, value, 1);
    float first = __shfl_sync(kAll, value, 0);
    float eighth = __shfl_sync(kAll, value, 7, 16);
    float above = __shfl_down_sync(kAll, value, 40);
    double wide = __shfl_xor_sync(kAll, double(value), 63);
    __syncwarp();
    int64_t* out = y + 8 * threadIdx.x;
    out[0] = positive;
    out[1] = int64_t(below);
    out[2] = int64_t(first);
    out[3] = int64_t(eighth);
    out[4] = int64_t(above);
    out[5] = int64_t(wide);
    out[6] = __any_sync(kAll, value > 40) + 2 * __all_sync(kAll, value > -100);
    out[7] = __popcll(__activemask());
}
__global__ void __launch_bounds__(512) block_rows(const float* x, float* y, int64_t columns) {
    float sum = 0.0f;
    for (int64_t c = threadIdx.x; c < columns; c += blockDim.x) sum += x[blockIdx.x * columns + c];
    sum = block_reduce(sum, 0.0f, wave_sum);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
__global__ void softmax_rows(const maca_bfloat16* x, maca_bfloat16* y, int64_t columns) {
    extern __shared__ float row[];
    const maca_bfloat16* in = x + blockIdx.x * columns;
    float largest = -INFINITY;
    for (int64_t c = threadIdx.x; c < columns; c += blockDim.x) {
        row[c] = __bfloat162float(in[c]);
        largest = fmaxf(largest, row[c]);
    }
    largest = block_reduce(largest, -INFINITY, wave_max);
    float sum = 0.0f;
    for (int64_t c = threadIdx.x; c < columns; c += blockDim.x) sum += row[c] = __expf(row[c] - largest);
    sum = block_reduce(sum, 0.0f, wave_sum);
    for (int64_t c = threadIdx.x; c < columns; c += blockDim.x) {
        y[blockIdx.x * columns + c] = __float2bfloat16(row[c] / sum);
    }
}

extern "C" mcError_t launch_wave_rows(const float* x, float* y, int64_t n, int threads, mcStream_t s) {
    wave_rows<<<n / threads, threads, 0, s>>>(x, y);
    return mcGetLastError();
}
extern "C" mcError_t launch_wave_votes(const float* x, int64_t* y, mcStream_t s) {
    wave_votes<<<1, 128, 0, s>>>(x, y);
    return mcGetLastError();
}
extern "C" mcError_t launch_block_rows(const float* x, float* y, int64_t rows, int64_t columns,
                                       int threads, mcStream_t s) {
    block_rows<<<rows, threads, 0, s>>>(x, y, columns);
    return mcGetLastError();
}
extern "C" mcError_t launch_softmax(const maca_bfloat16* x, maca_bfloat16* y, int64_t rows,
                                    int64_t columns, mcStream_t s) {
    mcFuncSetAttribute((const void*)softmax_rows, mcFuncAttributeMaxDynamicSharedMemorySize, 65536);
    softmax_rows<<<rows, 256, columns * sizeof(float), s>>>(x, y, columns);
    return mcGetLastError();
}
extern "C" int wave_size_of_device() {
    mcDeviceProp_t properties;
    int value = 0;
    if (mcGetDeviceProperties(&properties, 0) != mcSuccess) return -1;
    mcDeviceGetAttribute(&value, mcDeviceAttributeWarpSize, 0);
    return properties.warpSize == value ? value : -1;
}
