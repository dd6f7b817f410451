// Kernels that take a wave for a warp of 32 threads, in ways that waves of 64 must not let pass.
#include <mc_runtime.h>
#include <cstdint>

__device__ float narrow_sum(float value) {
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffff, value, offset);
    return value;
}
// Wrong: all 64 threads of a wave call it, and the mask names half of them.
__global__ void all_call(const float* x, float* y) {
    float sum = narrow_sum(x[threadIdx.x]);
    if (threadIdx.x % 32 == 0) y[threadIdx.x / 32] = sum;
}
// Right: half of a wave calls it, and the mask names that half.
__global__ void half_calls(const float* x, float* y) {
    if (threadIdx.x < 32) {
        float sum = narrow_sum(x[threadIdx.x] + x[threadIdx.x + 32]);
        if (threadIdx.x == 0) y[0] = sum;
    }
}
// Wrong: a block with more waves than can be emulated.
__global__ void too_many_waves(float* y) {
    float value = __shfl_xor_sync(0xffffffffffffffffull, float(threadIdx.x), 1);
    y[threadIdx.x] = value;
}

extern "C" void launch_all_call(const float* x, float* y, mcStream_t s) { all_call<<<1, 64, 0, s>>>(x, y); }
extern "C" void launch_half_calls(const float* x, float* y, mcStream_t s) { half_calls<<<1, 64, 0, s>>>(x, y); }
extern "C" void launch_too_many_waves(float* y, mcStream_t s) { too_many_waves<<<1, 1024, 0, s>>>(y); }
