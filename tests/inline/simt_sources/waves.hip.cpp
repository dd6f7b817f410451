// Waves of 64 lanes by HIP's names, without masks.
#include <hip/hip_runtime.h>
#include <hip/hip_fp16.h>

template <typename T>
__global__ void wave_max(const T* x, float* y, int n) {
    HIP_DYNAMIC_SHARED(float, parts)
    float v = threadIdx.x < n ? float(x[blockIdx.x * n + threadIdx.x]) : -INFINITY;
    for (int d = warpSize / 2; d > 0; d /= 2) v = fmaxf(v, __shfl_xor(v, d));
    if (threadIdx.x % warpSize == 0) parts[threadIdx.x / warpSize] = v;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < blockDim.x / warpSize; ++w) v = fmaxf(v, parts[w]);
        y[blockIdx.x] = v;
    }
}
extern "C" int launch_max(const void* x, float* y, int rows, int n, hipStream_t stream) {
    hipLaunchKernelGGL(wave_max<__half>, dim3(rows), dim3(192), 64, stream, (const __half*)x, y, n);
    return hipGetLastError();
}
__global__ void diverging(int* out) {
    int t = threadIdx.x;
    if (t < 10) out[t] = __popcll(__ballot(1)) * 100 + __shfl(t, 9);
    else if (t < 30) out[t] = __popcll(__ballot(t % 2)) * 100 + __shfl(t, 29);
    else out[t] = 0;
    int rounds = t % 3;
    for (int i = 0; i < rounds; ++i)
        out[t] += 10000 * __popcll(__ballot(1));
    out[t] += __all(t < 64) + __shfl_down(t, 1) * 1000000;
    float4 v = make_float4(1, 2, 3, 4) * 2.0f;
    out[t] += int(v.w) - 8;
}
extern "C" void launch_diverging(int* out) { diverging<<<1, 64>>>(out); }
