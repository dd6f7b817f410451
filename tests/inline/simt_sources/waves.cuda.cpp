// Waves of 32 lanes, cooperative groups, barriers, and kernels that cannot go on.
#include <cuda_runtime.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

__global__ void shuffles(int* out) {
    int t = threadIdx.x;
    int* row = out + t * 12;
    row[0] = __shfl_sync(~0u, t, 5);
    row[1] = __shfl_sync(~0u, t, 3, 8);
    row[2] = __shfl_up_sync(~0u, t, 2);
    row[3] = __shfl_up_sync(~0u, t, 3, 4);
    row[4] = __shfl_down_sync(~0u, t, 4);
    row[5] = __shfl_down_sync(~0u, t, 1, 16);
    row[6] = __shfl_xor_sync(~0u, t, 9);
    row[7] = __shfl_xor_sync(~0u, t, 12, 8);
    row[8] = __ballot_sync(~0u, t % 3 == 0);
    row[9] = __any_sync(~0u, t == 40) * 2 + __all_sync(~0u, t < 32);
    row[10] = __reduce_add_sync(~0u, t) * 100 + __reduce_max_sync(~0u, t);
    row[11] = __match_any_sync(~0u, t % 4);
}
extern "C" void launch_shuffles(int* out) { shuffles<<<1, 64>>>(out); }

__global__ void halves(int* out) {
    int t = threadIdx.x;
    if (t < 20) {
        unsigned active = __activemask();
        out[t] = __popc(active) * 1000 + __shfl_sync(active, t, 19);
    } else {
        out[t] = __shfl_sync(0xfff00000u, t, 25);
    }
    __syncwarp();
    out[t] += __syncthreads_count(t % 2) * 100000 + __syncthreads_and(t < 32) + __syncthreads_or(t == 50);
}
extern "C" void launch_halves(int* out) { halves<<<1, 32>>>(out); }

__global__ void grouped(const float* x, float* out) {
    cg::thread_block block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    float v = x[block.thread_rank()];
    float sum = cg::reduce(tile, v, cg::plus<float>());
    float most = v;
    for (int d = tile.size() / 2; d > 0; d /= 2) most = fmaxf(most, tile.shfl_down(most, d));
    tile.sync();
    block.sync();
    out[block.thread_rank()] = sum + 1000.0f * tile.shfl(most, 0) + tile.ballot(tile.thread_rank() == 1);
}
extern "C" void launch_grouped(const float* x, float* out) { grouped<<<1, 48>>>(x, out); }

__global__ void leaves_early(const int* x, int* y, int n) {
    __shared__ int sum;
    if (threadIdx.x >= n) return;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, x[threadIdx.x]);
    __syncthreads();
    y[threadIdx.x] = sum + __shfl_xor_sync(0xffffffff, 1, 1);
}
extern "C" int launch_leaves_early(const int* x, int* y, int n) {
    leaves_early<<<1, 100>>>(x, y, n);
    return cudaGetLastError();
}

__global__ void different_barriers(int* out) {
    if (threadIdx.x < 16) {
        __syncthreads();
        out[0] = 1;
    }
    __syncthreads();
    out[1] = 1;
}
__global__ void barrier_against_wave() {
    if (threadIdx.x < 16) __syncthreads();
    __syncwarp();
}
__global__ void missing_lanes(int* out) {
    if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(0xffffffff, 3, 0);
    else __syncthreads();
}
__global__ void stranger(int* out) { out[threadIdx.x] = __shfl_sync(0xffff, 3, 0); }
__global__ void nobody(int* out) { out[threadIdx.x] = __ballot_sync(0, 1); }
__global__ void trapped() { if (threadIdx.x == 3) __trap(); __syncthreads(); }
__global__ void nested(int* out) { stranger<<<1, 1>>>(out); }
extern "C" int launch_wrong(int which, int* out) {
    if (which == 0) different_barriers<<<2, 32>>>(out);
    if (which == 1) barrier_against_wave<<<1, 32>>>();
    if (which == 2) missing_lanes<<<1, 64>>>(out);
    if (which == 3) stranger<<<1, 32>>>(out);
    if (which == 4) trapped<<<1, 32>>>();
    if (which == 5) nested<<<1, 1>>>(out);
    if (which == 6) nobody<<<1, 32>>>(out);
    return cudaGetLastError();
}

__global__ void waits_for_a_flag(volatile int* flag, int* out) {
    if (threadIdx.x == 0) while (atomicAdd((int*)flag, 0) == 0) {}
    if (threadIdx.x == 40) *flag = 7;
    if (threadIdx.x == 0) *out = *flag;
}
extern "C" void launch_flag(int* flag, int* out) { waits_for_a_flag<<<1, 64>>>(flag, out); }

template <typename T> __device__ T* remembered() { __shared__ T value[64]; return value; }
__global__ void remember(int* out, int value) { *out = remembered<int>()[0]; remembered<int>()[0] = value; }
extern "C" void launch_remember(int* out, int value) { remember<<<1, 1>>>(out, value); }
