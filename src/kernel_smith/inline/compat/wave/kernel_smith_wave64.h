// Waves of 64 threads on an NVIDIA GPU, whose warps have 32. For nvcc alone.
//
// A wave is two adjacent warps of a block: threads 64w ... 64w + 63 by their linear index. An
// operation of the whole wave goes through shared memory, and its two warps meet at the named
// barrier 1 + w. There are 15 such barriers, so a block has at most 15 waves (960 threads).
// Kernels that use these operations take 7680 bytes of shared memory more than they say.
//
// What is caught, by a device-side assertion whose message goes to stderr:
//  - a thread that its own mask does not name. So a whole wave that passes 0xffffffff is caught:
//    its upper half is not named. Half a wave alone may pass it, which is right on waves of 64, too;
//  - a mask that names parts of both halves: which lanes would come to the barrier is not known;
//  - xor and indexed shuffles that read a lane in the half that the mask leaves out, or that the
//    block does not have;
//  - a block with more than 15 waves.
//
// Lanes beyond the end of the block count as inactive: masks may name them, votes see zeros, and
// what else is read from them is undefined. A block may have any size up to 960.
//
// What is not caught:
//  - a mask over both halves for which one half never comes, because its threads returned or took
//    another way, waits forever, until somebody's time limit ends it;
//  - reading a lane of one's own half that the mask does not name is undefined, as everywhere;
//  - a kernel that assumes warps of 32 and never says so in a mask gives the result that it has on
//    waves of 64, which may be right: halves that keep to themselves are.
#pragma once

#include <cuda_runtime.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace kernel_smith {

typedef unsigned long long Mask;

constexpr int kWave = 64;
constexpr int kHalf = 32;
constexpr int kMostWaves = 15;

// nvcc reads a source twice, and knows the device's assertions only when it compiles for the device.
#if defined(__CUDACC__) && !defined(__CUDA_ARCH__)
#define KERNEL_SMITH_REQUIRE(condition, message) ((void)0)
#else
#define KERNEL_SMITH_REQUIRE(condition, message) \
    ((condition) ? (void)0 : __assert_fail(message, "kernel_smith_wave64.h", __LINE__, __func__))
#endif

__device__ __forceinline__ int thread_index() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
__device__ __forceinline__ int lane_index() { return thread_index() % kWave; }
__device__ __forceinline__ int half_index() { return lane_index() / kHalf; }

// The lanes of this wave that the block has.
__device__ __forceinline__ Mask existing_lanes() {
    int count = blockDim.x * blockDim.y * blockDim.z - (thread_index() & ~(kWave - 1));
    return count >= kWave ? ~Mask(0) : (Mask(1) << count) - 1;
}

__device__ __forceinline__ unsigned own_half(Mask mask) {
    return unsigned(mask >> (kHalf * half_index()));
}
__device__ __forceinline__ bool has_other_half(Mask mask) {
    return unsigned(mask >> (kHalf * (1 - half_index()))) != 0;
}

// The lanes of a mask that exist, if this emulation can serve them.
__device__ __forceinline__ Mask checked(Mask mask) {
    KERNEL_SMITH_REQUIRE(
        mask >> lane_index() & 1,
        "a thread calls a wave operation with a mask that does not name it (waves have 64 threads; "
        "0xffffffff names 32)");
    Mask existing = existing_lanes();
    mask &= existing;
    KERNEL_SMITH_REQUIRE(
        mask == existing || !has_other_half(mask),
        "a mask that names parts of both halves of a wave is not emulated on NVIDIA");
    return mask;
}

// Not `bar.sync`, which wants all threads of a warp at once: they may have diverged.
#ifndef KERNEL_SMITH_BARRIER
#define KERNEL_SMITH_BARRIER(id) asm volatile("barrier.sync %0, 64;" ::"r"(id) : "memory")
#endif

// Both warps of the wave arrive; then what either wrote before is seen by the other.
__device__ __forceinline__ void meet() {
    int wave = thread_index() / kWave;
    KERNEL_SMITH_REQUIRE(wave < kMostWaves,
                         "a block of more than 15 waves (960 threads) is not emulated on NVIDIA");
    KERNEL_SMITH_BARRIER(wave + 1);
}

// One cell per lane of the block.
__device__ __forceinline__ volatile Mask* cells() {
    __shared__ Mask memory[kMostWaves * kWave];
    return memory + (thread_index() / kWave) * kWave;
}

template <typename T>
__device__ __forceinline__ Mask packed(T value) {
    static_assert(sizeof(T) <= sizeof(Mask), "wave operations move values of at most 8 bytes");
    Mask bits = 0;
    memcpy(&bits, &value, sizeof(T));
    return bits;
}
template <typename T>
__device__ __forceinline__ T unpacked(Mask bits) {
    T value;
    memcpy(&value, &bits, sizeof(T));
    return value;
}

__device__ __forceinline__ void put(Mask bits) {
    // Checked before the write: a wave too many would write beside the memory.
    KERNEL_SMITH_REQUIRE(thread_index() / kWave < kMostWaves,
                         "a block of more than 15 waves (960 threads) is not emulated on NVIDIA");
    cells()[lane_index()] = bits;
    meet();
}

// The value of another lane. `source` is a lane of the wave; the mask was checked.
template <typename T>
__device__ __forceinline__ T moved(Mask mask, T value, int source) {
    if (!has_other_half(mask)) {
        Mask bits = packed(value);
        unsigned low = __shfl_sync(own_half(mask), unsigned(bits), source % kHalf);
        unsigned high = __shfl_sync(own_half(mask), unsigned(bits >> 32), source % kHalf);
        return unpacked<T>(Mask(high) << 32 | low);
    }
    put(packed(value));
    Mask bits = cells()[source];
    meet();
    return unpacked<T>(bits);
}

__device__ __forceinline__ bool is_within_reach(Mask mask, int source) {
    return has_other_half(mask) || source / kHalf == half_index();
}

template <typename T>
__device__ __forceinline__ T moved_from_named(Mask mask, T value, int source) {
    KERNEL_SMITH_REQUIRE(is_within_reach(mask, source),
                         "a shuffle reads a lane in a half of the wave that is not named or not there");
    return moved(mask, value, source);
}

// What lies beyond the named half is undefined: a reduction of half a wave reads and ignores it.
template <typename T>
__device__ __forceinline__ T moved_or_kept(Mask mask, T value, int source) {
    bool reachable = is_within_reach(mask, source);
    T other = moved(mask, value, reachable ? source : lane_index());
    return reachable ? other : value;
}

template <typename T>
__device__ __forceinline__ T shfl_sync(Mask mask, T value, int source, int width = kWave) {
    int first = lane_index() & ~(width - 1);
    return moved_from_named(checked(mask), value, first | (source & (width - 1)));
}
template <typename T>
__device__ __forceinline__ T shfl_xor_sync(Mask mask, T value, int bits, int width = kWave) {
    int lane = lane_index();
    int source = lane ^ bits;
    int end = (lane & ~(width - 1)) + width;
    return moved_from_named(checked(mask), value, source < end ? source : lane);
}
template <typename T>
__device__ __forceinline__ T shfl_up_sync(Mask mask, T value, unsigned delta, int width = kWave) {
    int lane = lane_index();
    bool inside = unsigned(lane & (width - 1)) >= delta;
    return moved_or_kept(checked(mask), value, inside ? lane - int(delta) : lane);
}
template <typename T>
__device__ __forceinline__ T shfl_down_sync(Mask mask, T value, unsigned delta, int width = kWave) {
    int lane = lane_index();
    bool inside = (lane & (width - 1)) + Mask(delta) < Mask(width);
    return moved_or_kept(checked(mask), value, inside ? lane + int(delta) : lane);
}

__device__ __forceinline__ Mask ballot_sync(Mask mask, int predicate) {
    mask = checked(mask);
    Mask own = Mask(__ballot_sync(own_half(mask), predicate)) << (kHalf * half_index());
    if (!has_other_half(mask)) return own;
    KERNEL_SMITH_REQUIRE(thread_index() / kWave < kMostWaves,
                         "a block of more than 15 waves (960 threads) is not emulated on NVIDIA");
    // One cell per half, to which all of its threads write the same.
    cells()[half_index()] = own;
    meet();
    Mask other = cells()[1 - half_index()];
    meet();
    return own | other;
}
__device__ __forceinline__ int any_sync(Mask mask, int predicate) {
    return ballot_sync(mask, predicate) != 0;
}
__device__ __forceinline__ int all_sync(Mask mask, int predicate) {
    return ballot_sync(mask, !predicate) == 0;
}

__device__ __forceinline__ void syncwarp(Mask mask = ~Mask(0)) {
    mask = checked(mask);
    if (has_other_half(mask)) {
        meet();
    } else {
        ::__syncwarp(own_half(mask));
    }
}

// The lanes that are active, as far as one warp knows: where all of its threads are, the other half
// is taken to be active too; where some are not, the other half is left out.
__device__ __forceinline__ Mask activemask() {
    Mask own = Mask(::__activemask()) << (kHalf * half_index());
    Mask existing = existing_lanes();
    return own_half(existing) == own_half(own) ? existing : own;
}

template <typename T, typename Combine>
__device__ __forceinline__ T reduce_sync(Mask mask, T value, Combine combine) {
    T result = value;
    mask = checked(mask);
    for (int step = 1; step < kWave; ++step) {
        int source = (lane_index() + step) % kWave;
        T other = moved_or_kept(mask, value, source);
        if (mask >> source & 1) result = combine(result, other);
    }
    return result;
}
template <typename T>
__device__ __forceinline__ T reduce_add_sync(Mask mask, T value) {
    return reduce_sync(mask, value, [](T a, T b) { return a + b; });
}
template <typename T>
__device__ __forceinline__ T reduce_min_sync(Mask mask, T value) {
    return reduce_sync(mask, value, [](T a, T b) { return a < b ? a : b; });
}
template <typename T>
__device__ __forceinline__ T reduce_max_sync(Mask mask, T value) {
    return reduce_sync(mask, value, [](T a, T b) { return a > b ? a : b; });
}

// HIP's operations without a mask mean the lanes that are active.
template <typename T>
__device__ __forceinline__ T shfl(T value, int source, int width = kWave) {
    return shfl_sync(activemask(), value, source, width);
}
template <typename T>
__device__ __forceinline__ T shfl_xor(T value, int bits, int width = kWave) {
    return shfl_xor_sync(activemask(), value, bits, width);
}
template <typename T>
__device__ __forceinline__ T shfl_up(T value, unsigned delta, int width = kWave) {
    return shfl_up_sync(activemask(), value, delta, width);
}
template <typename T>
__device__ __forceinline__ T shfl_down(T value, unsigned delta, int width = kWave) {
    return shfl_down_sync(activemask(), value, delta, width);
}
__device__ __forceinline__ Mask ballot(int predicate) {
    return ballot_sync(activemask(), predicate);
}
__device__ __forceinline__ int any(int predicate) { return any_sync(activemask(), predicate); }
__device__ __forceinline__ int all(int predicate) { return all_sync(activemask(), predicate); }

// `warpSize` is a macro below, also where a program asks for it among a device's properties.
struct DeviceProperties : cudaDeviceProp {
    static constexpr int kernel_smith_wave_size = kWave;
};
inline cudaError_t device_attribute(int* value, cudaDeviceAttr attribute, int device) {
    cudaError_t error = cudaDeviceGetAttribute(value, attribute, device);
    if (error == cudaSuccess && attribute == cudaDevAttrWarpSize) *value = kWave;
    return error;
}

}  // namespace kernel_smith

constexpr int kernel_smith_wave_size = kernel_smith::kWave;

#define warpSize kernel_smith_wave_size

#define __shfl_sync(...) kernel_smith::shfl_sync(__VA_ARGS__)
#define __shfl_xor_sync(...) kernel_smith::shfl_xor_sync(__VA_ARGS__)
#define __shfl_up_sync(...) kernel_smith::shfl_up_sync(__VA_ARGS__)
#define __shfl_down_sync(...) kernel_smith::shfl_down_sync(__VA_ARGS__)
#define __ballot_sync(...) kernel_smith::ballot_sync(__VA_ARGS__)
#define __any_sync(...) kernel_smith::any_sync(__VA_ARGS__)
#define __all_sync(...) kernel_smith::all_sync(__VA_ARGS__)
#define __syncwarp(...) kernel_smith::syncwarp(__VA_ARGS__)
#define __activemask() kernel_smith::activemask()
#define __reduce_add_sync(...) kernel_smith::reduce_add_sync(__VA_ARGS__)
#define __reduce_min_sync(...) kernel_smith::reduce_min_sync(__VA_ARGS__)
#define __reduce_max_sync(...) kernel_smith::reduce_max_sync(__VA_ARGS__)
#define __match_any_sync(...) KERNEL_SMITH_NOT_EMULATED("__match_any_sync")
#define __match_all_sync(...) KERNEL_SMITH_NOT_EMULATED("__match_all_sync")
#define __reduce_and_sync(...) KERNEL_SMITH_NOT_EMULATED("__reduce_and_sync")
#define __reduce_or_sync(...) KERNEL_SMITH_NOT_EMULATED("__reduce_or_sync")
#define __reduce_xor_sync(...) KERNEL_SMITH_NOT_EMULATED("__reduce_xor_sync")
// In an expression, so that it may stand wherever the call did.
#define KERNEL_SMITH_NOT_EMULATED(name)                                            \
    ([]() {                                                                        \
        static_assert(false, name " is not emulated on NVIDIA for waves of 64");   \
        return 0;                                                                  \
    }())
