// Waves of 64 lanes by MACA's names.
#include <mc_runtime.h>
#include <common/maca_fp16.h>
#include <common/maca_bfloat16.h>

__device__ float wave_sum(float v) {
    for (int d = warpSize / 2; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffffffffffull, v, d);
    return v;
}
__global__ void row_mean(const maca_bfloat16* x, float* y, int columns) {
    __shared__ float parts[16];
    float sum = 0;
    for (int c = threadIdx.x; c < columns; c += blockDim.x)
        sum += __bfloat162float(x[blockIdx.x * columns + c]);
    sum = wave_sum(sum);
    if (threadIdx.x % warpSize == 0) parts[threadIdx.x / warpSize] = sum;
    __syncthreads();
    if (threadIdx.x >= warpSize) return;
    sum = wave_sum(threadIdx.x < blockDim.x / warpSize ? parts[threadIdx.x] : 0.0f);
    if (threadIdx.x == 0) y[blockIdx.x] = sum / columns;
}
extern "C" int launch_mean(const void* x, float* y, int rows, int columns, mcStream_t stream) {
    mcMemsetAsync(y, 0, rows * sizeof(float), stream);
    row_mean<<<rows, 256, 0, stream>>>((const maca_bfloat16*)x, y, columns);
    return mcGetLastError() == mcSuccess ? 0 : 1;
}
__global__ void ballots(unsigned long long* out) {
    out[threadIdx.x] = __ballot_sync(~0ull, threadIdx.x % 2 == 0) + __popcll(__activemask());
}
extern "C" void launch_ballots(unsigned long long* out) { ballots<<<1, 64>>>(out); }
__global__ void thinks_of_32_lanes(float* x) {
    float v = x[threadIdx.x];
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffff, v, d);
    x[threadIdx.x] = v;
}
extern "C" int launch_narrow_mask(float* x) {
    thinks_of_32_lanes<<<1, 64>>>(x);
    return mcGetLastError();
}
